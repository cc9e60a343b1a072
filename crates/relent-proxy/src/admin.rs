//! The admin pages: `/metrics`, `/healthz`, `/config`. A server and a thread of their own: whoever looks at a busy proxy
//! takes nothing from its workers, and gets an answer.

mod config;

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use relent::timer::{Clock, SystemTimer, Timer};
use relent_core::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, watch};

use crate::metrics::Metrics;
use crate::plan::Plan;

pub(crate) use config::page as config_page;

/// Connections at once; more wait.
const MOST_CONNECTIONS: usize = 64;
/// After an `accept` that failed.
const BREATH: Duration = Duration::from_millis(10);
/// For the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// What the pages are made of.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) drain: watch::Receiver<Option<Instant>>,
    /// It does not change while the proxy runs.
    pub(crate) config: String,
}

/// The thread; dropped, it ends.
#[derive(Debug)]
pub(crate) struct Admin {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Serves `pages` on `listener`.
    pub(crate) fn start(listener: TcpListener, pages: Arc<Pages>) -> io::Result<Admin> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (end, mut ended) = watch::channel(false);
        let thread = std::thread::Builder::new().name("relent-admin".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, pages) => {}
                    _ = ended.wait_for(|ended| *ended) => {}
                }
            });
        })?;
        Ok(Admin { end, thread: Some(thread) })
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

async fn accept(listener: TcpListener, pages: Arc<Pages>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = Arc::clone(&pages);
                tokio::spawn(async move {
                    serve(stream, pages).await;
                    drop(place);
                });
            }
            // For want of descriptors, say.
            Err(_) => SystemTimer.sleep_until(SystemTimer.now() + BREATH).await,
        }
    }
}

/// One connection.
pub(crate) async fn serve<T>(io: T, pages: Arc<Pages>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let response = pages.answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    // A client that breaks off has nobody to tell.
    drop(builder.serve_connection(TokioIo::new(io), service).await);
}

const TEXT: &str = "text/plain; charset=utf-8";

impl Pages {
    fn answer<B>(&self, request: &Request<B>) -> Response<Full> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is known here\n");
        }
        match request.uri().path() {
            "/metrics" => page(
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                self.metrics.render(&*self.plan),
            ),
            "/healthz" if self.drain.borrow().is_some() => {
                page(StatusCode::SERVICE_UNAVAILABLE, TEXT, "draining\n")
            }
            "/healthz" => page(StatusCode::OK, TEXT, "ok\n"),
            "/config" => page(StatusCode::OK, "application/json", self.config.clone()),
            _ => page(StatusCode::NOT_FOUND, TEXT, "there are /metrics, /healthz and /config\n"),
        }
    }
}

type Full = crate::respond::OneText;

fn page(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Full> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use relent_config::parse;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::access::AccessLog;

    fn pages(draining: bool) -> Arc<Pages> {
        let text = "version = 1\n[proxy]\nlisten = \"127.0.0.1:80\"\n[policy.p]\nattempts = 2\n\
                    [upstream.u]\nendpoints = [\"http://a\"]\n[[route]]\nupstream = \"u\"\npolicy = \"p\"\n";
        let config = parse("relent.toml", text).unwrap();
        let shown = config_page(&config);
        let proxy = config.proxy.clone().unwrap();
        let log = AccessLog::open(&relent_config::AccessLog::None).unwrap();
        let plan = Arc::new(Plan::new(config, proxy, log));
        let metrics = Arc::new(Metrics::new(plan.target_names(), 1));
        let drain = draining.then_some(Instant::ZERO);
        Arc::new(Pages { metrics, plan, drain: watch::channel(drain).1, config: shown })
    }

    async fn ask(line: &str, draining: bool) -> String {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(server, pages(draining)));
        client
            .write_all(format!("{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn the_pages_and_nothing_else() {
        let metrics = ask("GET /metrics", false).await;
        assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("relent_build_info"), "{metrics}");
        assert!(ask("GET /healthz", false).await.ends_with("\r\n\r\nok\n"));
        assert!(ask("GET /healthz", true).await.starts_with("HTTP/1.1 503"));
        assert!(ask("HEAD /healthz", false).await.starts_with("HTTP/1.1 200"));
        assert!(ask("GET /", false).await.starts_with("HTTP/1.1 404"));
        assert!(ask("POST /healthz", false).await.starts_with("HTTP/1.1 405"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_config_says_where_values_come_from() {
        let answer = ask("GET /config", false).await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let page: serde_json::Value = serde_json::from_str(body).unwrap();
        let attempts = &page["routes"][0]["policy"]["fields"]["attempts"];
        assert_eq!(attempts["value"], "2");
        assert_eq!(attempts["from"], "relent.toml:5:12");
        assert_eq!(page["routes"][0]["policy"]["fields"]["deadline"]["from"], "default");
        assert_eq!(page["routes"][0]["upstream"]["endpoints"][0], "http://a:80");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_head_is_not_waited_for() {
        let (mut client, server) = tokio::io::duplex(1024);
        tokio::spawn(serve(server, pages(false)));
        client.write_all(b"GET /metr").await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"));
    }
}
