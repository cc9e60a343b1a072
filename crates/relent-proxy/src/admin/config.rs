//! `/config`: what is in force, and where each value of a policy comes from. There are no secrets in it, since there are
//! none in the file.

use relent_config::{AccessLog, Config, Protocol, ProxyConfig, Route, Upstream, format_duration};
use serde_json::{Map, Value, json};

/// The page.
pub(crate) fn page(config: &Config) -> String {
    let routes: Vec<Value> = config.routes.iter().map(|route| of_route(config, route)).collect();
    let page = json!({ "proxy": config.proxy.as_ref().map(of_proxy), "routes": routes });
    format!("{page:#}\n")
}

fn of_proxy(proxy: &ProxyConfig) -> Value {
    json!({
        "listen": proxy.listen.to_string(),
        "admin": proxy.admin.map(|admin| admin.to_string()),
        "trusted_peers": proxy.trusted_peers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "workers": proxy.workers,
        "max_connections": proxy.max_connections,
        "max_requests": proxy.max_requests,
        "header_timeout": format_duration(proxy.header_timeout),
        "idle_timeout": format_duration(proxy.idle_timeout),
        "body_timeout": format_duration(proxy.body_timeout),
        "grace": format_duration(proxy.grace),
        "access_log": match &proxy.access_log {
            AccessLog::None => "none".to_owned(),
            AccessLog::Stderr => "stderr".to_owned(),
            AccessLog::File(path) => path.display().to_string(),
            _ => "stdout".to_owned(),
        },
        "outcome_header": proxy.outcome_header,
        "rate_limited_header": proxy.rate_limited_header,
    })
}

fn of_route(config: &Config, route: &Route) -> Value {
    json!({
        "path": route.matcher.path,
        "host": route.matcher.host.as_ref().map(ToString::to_string),
        "methods": route.matcher.methods,
        "upstream": config.upstreams.get(&route.upstream).map(|upstream| of_upstream(&route.upstream, upstream)),
        "policy": of_policy(config, &route.policy),
    })
}

fn of_upstream(name: &str, upstream: &Upstream) -> Value {
    json!({
        "name": name,
        "endpoints": upstream.endpoints.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "protocol": if upstream.protocol == Protocol::Http2 { "h2" } else { "http1" },
        "idle_timeout": format_duration(upstream.idle_timeout),
        "connect_timeout": format_duration(upstream.connect_timeout),
        "trust": upstream.trust,
        "stamp": upstream.stamp,
    })
}

fn of_policy(config: &Config, name: &str) -> Value {
    let field = |setting: relent_config::Setting| {
        let told = json!({ "value": setting.value, "from": setting.origin.to_string() });
        (setting.name.to_owned(), told)
    };
    let fields: Map<String, Value> = config.settings(name).into_iter().map(field).collect();
    json!({ "name": name, "fields": fields })
}
