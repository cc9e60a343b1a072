//! A browser's WebSocket and EventSource, by a page that the service hands out through the proxy.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::stand::{AT_ONCE, GIVE_UP, Stand};

/// Tries both, and reports. Both fail at first, which the proxy hides.
pub(super) const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<title>trying</title>
<script>
const socket = new Promise((done, failed) => {
    const socket = new WebSocket(`ws://${location.host}/flaky/ws`);
    const heard = [];
    socket.onopen = () => { socket.send("hello"); socket.send(new Uint8Array(70000)); };
    socket.onmessage = (event) => {
        heard.push(typeof event.data === "string" ? event.data : event.data.size);
        if (heard.length === 2) socket.close(1000);
    };
    socket.onclose = (event) => done([...heard, event.code, event.wasClean]);
});
const events = new Promise((done) => {
    const source = new EventSource("/flaky/events");
    const heard = [];
    source.onmessage = (event) => heard.push(event.data);
    source.addEventListener("last", (event) => { source.close(); done([...heard, event.data]); });
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) done([...heard, "failed"]); };
});
const report = (what) => fetch("/report", { method: "POST", body: JSON.stringify(what) });
Promise.all([socket, events]).then(report, (error) => report(String(error)));
</script>
"#;

/// Ends with its test.
struct Browser(Child, PathBuf);

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
        // What its last helpers hold stays, for the next run to remove.
        drop(std::fs::remove_dir_all(&self.1));
    }
}

/// Where a Chromium is: named by `CHROMIUM`, on the path, or among those that Playwright keeps.
fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let mut known = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    known.find(|program| program.is_file()).or_else(of_playwright)
}

fn of_playwright() -> Option<PathBuf> {
    let named = std::env::var_os("PLAYWRIGHT_BROWSERS_PATH").map(PathBuf::from);
    let cache = named.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache/ms-playwright")))?;
    let browsers = cache.read_dir().ok()?.flatten();
    let programs = browsers.map(|browser| browser.path().join("chrome-linux/chrome"));
    programs.filter(|program| program.is_file()).max()
}

#[test]
fn a_browsers_websocket_and_event_source() {
    let Some(program) = chromium() else {
        eprintln!("skipped: there is no Chromium (the variable CHROMIUM can name one)");
        return;
    };
    let stand = Stand::start(AT_ONCE);
    let reports = stand.memory.reports();
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    drop(std::fs::remove_dir_all(&profile));
    let mut command = Command::new(program);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--no-proxy-server", "--disable-background-networking", "--disable-component-update"])
        .arg(format!("--user-data-dir={}", profile.display()))
        // Keeps it from ending with the page's load.
        .arg("--remote-debugging-port=0")
        .arg(stand.url("/page"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let browser = Browser(command.spawn().unwrap(), profile);
    let report = reports.recv_timeout(GIVE_UP).expect("the page reports");
    drop(browser);
    assert_eq!(report, r#"[["hello",70000,1000,true],["one","two","three","four"]]"#);
    assert_eq!((stand.memory.seen("/flaky/ws"), stand.memory.seen("/flaky/events")), (2, 3));
}
