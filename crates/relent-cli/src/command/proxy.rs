//! `relent proxy`: the retrying reverse proxy, until a signal ends it.

use std::io::{self, Write};
use std::net::SocketAddr;

use relent_config::{AccessLog, Config, Protocol, ProxyConfig, Route, Upstream};
use relent_proxy::{Ended, Proxy, StartError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{ProxyArgs, Standard};
use crate::exit::{Exit, Failure};

/// The name of the only upstream and policy without a file.
const NAME: &str = "default";

/// Runs the proxy until it is told to end.
pub(crate) fn proxy(args: &ProxyArgs) -> Result<Exit, Failure> {
    let config = match &args.config {
        Some(_) => from_file(args)?,
        None => from_flags(args)?,
    };
    let cannot = |error: io::Error| Failure::failed(format!("can't start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    runtime.block_on(async {
        // Heard from before the first connection on.
        let mut signals = Signals::listen().map_err(cannot)?;
        let proxy = relent_proxy::start(config).map_err(|error| not_started(&error))?;
        say(&format!("listening on http://{}", proxy.listening()));
        if let Some(admin) = proxy.admin() {
            say(&format!("admin on http://{admin}"));
        }
        signals.next().await;
        say("ending: no new connections; requests in flight go on for a while");
        end(proxy, &mut signals).await
    })
}

/// Waits for the end, or for the second signal.
async fn end(proxy: Proxy, signals: &mut Signals) -> Result<Exit, Failure> {
    proxy.drain();
    let ended = tokio::task::spawn_blocking(move || proxy.join());
    tokio::select! {
        ended = ended => {
            match ended {
                Ok(Ended { cut: 0, .. }) => say("ended"),
                Ok(Ended { cut, .. }) => say(&format!("ended; {cut} connections were cut off at the end of the grace period")),
                Err(error) => return Err(Failure::failed(format!("the end went wrong: {error}"))),
            }
            Ok(Exit::Success)
        }
        // Threads that still run end with the process.
        number = signals.next() => std::process::exit(i32::from(Exit::Signal(number).code())),
    }
}

/// The file's configuration, and what flags change of the proxy.
fn from_file(args: &ProxyArgs) -> Result<Config, Failure> {
    let only_without = [("--upstream", !args.upstream.is_empty()), ("--h2", args.h2)];
    let given = only_without.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag);
    if let Some(flag) = given.chain(args.policy.given()).next() {
        return Err(Failure::usage(format!(
            "--config and {flag} contradict each other: change the file, or leave it out"
        )));
    }
    let file = args.config.as_deref().unwrap_or_else(|| std::path::Path::new(""));
    let mut config = relent_config::load(file).map_err(Failure::usage)?;
    match &mut config.proxy {
        Some(proxy) => {
            proxy.listen = args.listen.unwrap_or(proxy.listen);
            adopt(proxy, args);
            check(proxy)?;
            Ok(config)
        }
        None => Err(Failure::usage(format!(
            "{} has no [proxy]: add it, with listen = \"127.0.0.1:8080\", and [[route]]",
            file.display()
        ))),
    }
}

/// One upstream, the default policy, and what flags change of it.
fn from_flags(args: &ProxyArgs) -> Result<Config, Failure> {
    let (Some(listen), false) = (args.listen, args.upstream.is_empty()) else {
        return Err(Failure::usage(
            "give a file with --config, or --listen and --upstream, as in\n  \
             relent proxy --listen 127.0.0.1:8080 --upstream http://127.0.0.1:9000",
        ));
    };
    let mut proxy = ProxyConfig::new(listen);
    proxy.access_log = AccessLog::None;
    adopt(&mut proxy, args);
    check(&proxy)?;
    let mut upstream = Upstream::new(args.upstream.clone());
    for (place, endpoint) in upstream.endpoints.iter().enumerate() {
        let itself =
            endpoint.address().map(|address| SocketAddr::new(address, endpoint.port())) == Some(listen);
        if itself {
            return Err(Failure::usage(format!(
                "--upstream {endpoint} is where the proxy itself listens, and it would call itself: name the service's own port"
            )));
        }
        if upstream.endpoints[..place].contains(endpoint) {
            return Err(Failure::usage(format!("--upstream {endpoint} is given twice: leave one out")));
        }
    }
    upstream.protocol = if args.h2 { Protocol::Http2 } else { Protocol::Http1 };
    let mut config = Config::default();
    config.policies.insert(NAME.to_owned(), args.policy.build(Standard::Library)?);
    config.upstreams.insert(NAME.to_owned(), upstream);
    config.routes.push(Route::all(NAME, NAME));
    config.proxy = Some(proxy);
    Ok(config)
}

/// What flags say of the proxy goes before the file.
fn adopt(proxy: &mut ProxyConfig, args: &ProxyArgs) {
    proxy.admin = args.admin.or(proxy.admin);
    proxy.workers = args.workers.or(proxy.workers);
    proxy.grace = args.grace.unwrap_or(proxy.grace);
    if let Some(log) = &args.access_log {
        proxy.access_log = log.clone();
    }
}

fn check(proxy: &ProxyConfig) -> Result<(), Failure> {
    if proxy.admin == Some(proxy.listen) && proxy.listen.port() != 0 {
        return Err(Failure::usage(format!(
            "--listen and --admin can't both be {}: give one of them another port",
            proxy.listen
        )));
    }
    Ok(())
}

/// What kept it from starting, and the mend.
fn not_started(error: &StartError) -> Failure {
    let text = |what: String, source: &io::Error, flag: &str| {
        let mend = match source.kind() {
            io::ErrorKind::AddrInUse => format!("choose another {flag}, or end the program that has it"),
            io::ErrorKind::PermissionDenied if flag == "--access-log" => {
                "let this user write there".to_owned()
            }
            io::ErrorKind::PermissionDenied => format!("choose a {flag} with a port from 1024 on"),
            io::ErrorKind::AddrNotAvailable => format!("choose a {flag} with an address of this machine"),
            _ => format!("choose another {flag}"),
        };
        Failure::usage(format!("{what}: {source}: {mend}"))
    };
    match error {
        StartError::Bind { source, .. } => text(error.to_string(), source, "--listen"),
        StartError::Admin { source, .. } => text(error.to_string(), source, "--admin"),
        StartError::AccessLog { source, .. } => text(error.to_string(), source, "--access-log"),
        StartError::NoProxy => Failure::usage(error),
        error => {
            let cause =
                std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
            Failure::failed(format!("{error}{cause}"))
        }
    }
}

/// To stderr: stdout is for the access log. Nobody is left to tell if it is gone.
fn say(text: &str) {
    drop(writeln!(io::stderr(), "relent: {text}"));
}

/// The signals that end it.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Listens from now on; needs a runtime.
    fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The number of the next one.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 15,
            _ = self.interrupt.recv() => 2,
        }
    }
}
