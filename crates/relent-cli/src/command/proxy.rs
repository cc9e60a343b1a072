//! `relent proxy`: the retrying reverse proxy, until a signal ends it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::task::Poll;

use relent_config::{AccessLog, Config, Protocol, ProxyConfig, Route, Upstream};
use relent_proxy::{Ended, StartError};
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
    let cannot = |error: io::Error| Failure::failed(format!("can't listen to signals: {error}"));
    let proxy = relent_proxy::bind(config).map_err(|error| not_started(&error))?;
    let signals = Signals::default();
    let (listening, admin) = (proxy.listening(), proxy.admin());
    let drain = async {
        // Heard from before the first connection on.
        signals.listen()?;
        say(&format!("listening on http://{listening}"));
        if let Some(admin) = admin {
            say(&format!("admin on http://{admin}"));
        }
        signals.next().await;
        say("ending: no new connections; requests in flight go on for a while");
        Ok(())
    };
    let mut heard = Ok(());
    let mut second = 0;
    let ended = proxy.run(async { heard = drain.await }, async { second = signals.next().await });
    heard.map_err(cannot)?;
    match ended.map_err(|error| not_started(&error))? {
        Some(Ended { cut: 0, .. }) => say("ended"),
        Some(Ended { cut, .. }) => {
            say(&format!("ended; {cut} connections were cut off at the end of the grace period"));
        }
        // Threads that still run end with the process.
        None => return Ok(Exit::Signal(second)),
    }
    Ok(Exit::Success)
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
#[derive(Default)]
struct Signals(RefCell<Option<(Signal, Signal)>>);

impl Signals {
    /// Listens from now on; needs a runtime.
    fn listen(&self) -> io::Result<()> {
        *self.0.borrow_mut() = Some((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?));
        Ok(())
    }

    /// The number of the next one.
    async fn next(&self) -> u8 {
        poll_fn(|cx| {
            let mut signals = self.0.borrow_mut();
            let Some((terminate, interrupt)) = &mut *signals else { return Poll::Pending };
            if terminate.poll_recv(cx).is_ready() {
                return Poll::Ready(15);
            }
            interrupt.poll_recv(cx).map(|_| 2)
        })
        .await
    }
}
