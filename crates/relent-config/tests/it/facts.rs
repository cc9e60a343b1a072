//! Proxy, upstreams and routes, as they come out.

use std::time::Duration;

use relent_config::{Config, Host, Matcher, Protocol, Upstream, parse};

const FILE: &str = r#"
version = 1
[proxy]
listen = "127.0.0.1:8080"
admin = "[::1]:8080"
trusted_peers = ["10.0.0.0/8", "::1"]
[policy.api]
[upstream.plain]
endpoints = ["http://127.0.0.1:9000", "http://[::1]:9001/", "http://Api.Example"]
[upstream.full]
endpoints = ["http://a"]
protocol = "h2"
idle_timeout = "1m"
connect_timeout = "250ms"
trust = false
stamp = false
[[route]]
path = "/api"
host = "API.example"
methods = ["POST", "GET"]
upstream = "plain"
policy = "api"
[[route]]
upstream = "full"
policy = "api"
"#;

fn config() -> Config {
    parse("relent.toml", FILE).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn the_proxy() {
    let proxy = config().proxy.expect("there is one");
    assert_eq!(proxy.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(proxy.admin.map(|admin| admin.to_string()), Some("[::1]:8080".to_owned()));
    let trusted = |address: &str| {
        let address = address.parse().expect("an address");
        proxy.trusted_peers.iter().any(|range| range.contains(address))
    };
    assert!(trusted("10.255.0.1") && trusted("::1") && !trusted("127.0.0.1") && !trusted("::2"));
    assert_eq!(parse("f", "version = 1\n").expect("valid").proxy, None);
}

#[test]
fn upstreams() {
    let config = config();
    let plain = &config.upstreams["plain"];
    let authorities: Vec<_> = plain.endpoints.iter().map(|endpoint| endpoint.authority()).collect();
    assert_eq!(authorities, ["127.0.0.1:9000", "[::1]:9001", "api.example:80"]);
    assert_eq!((plain.protocol, plain.trust, plain.stamp), (Protocol::Http1, true, true));
    assert_eq!(
        (plain.idle_timeout, plain.connect_timeout),
        (Upstream::IDLE_TIMEOUT, Upstream::CONNECT_TIMEOUT)
    );
    let full = &config.upstreams["full"];
    assert_eq!((full.protocol, full.trust, full.stamp), (Protocol::Http2, false, false));
    assert_eq!(
        (full.idle_timeout, full.connect_timeout),
        (Duration::from_secs(60), Duration::from_millis(250))
    );
}

#[test]
fn routes_in_their_order() {
    let routes = config().routes;
    let to: Vec<_> = routes.iter().map(|route| (route.upstream.as_str(), route.policy.as_str())).collect();
    assert_eq!(to, [("plain", "api"), ("full", "api")]);
    let first = &routes[0].matcher;
    assert_eq!(first.host, Some(Host::Name("api.example".to_owned())));
    assert!(first.matches("GET", Some("api.EXAMPLE"), "/api/users"));
    assert!(!first.matches("get", Some("api.example"), "/api"), "methods are told apart by case");
    assert!(!first.matches("GET", Some("other.example"), "/api"));
    assert!(!first.matches("GET", None, "/api"));
    assert!(!first.matches("GET", Some("api.example"), "/apiary"));
    let rest = &routes[1].matcher;
    assert_eq!(rest, &Matcher { path: "/".to_owned(), host: None, methods: None });
    assert!(rest.matches("PURGE", None, "/anything"));
}
