//! `relent proxy` before an unreliable service: two `curl`s, one whose request may be repeated and one whose may not.
//!
//! The proxy runs in this process, on free ports; as a program it is `relent proxy --config relent.toml`.

mod unreliable;

use std::process::Command;

use anyhow::{Context, Result, ensure};

fn main() -> Result<()> {
    let service = unreliable::start()?;
    let mut config = relent_config::parse("relent.toml", include_str!("../relent.toml"))?;
    config.proxy.as_mut().context("the file has [proxy]")?.listen.set_port(0);
    let shop = config.upstreams.get_mut("shop").context("the file has the upstream")?;
    shop.endpoints = vec![format!("http://{service}").parse()?];
    let proxy = relent_proxy::start(config)?;
    let shop = format!("http://{}", proxy.listening());

    // Two of three requests fail. A GET may be repeated, so its caller does not see that.
    let price = curl(&["--silent", "--include", &format!("{shop}/price/tea")])?;
    ensure!(price.starts_with("HTTP/1.1 200") && price.ends_with("350\n"), "{price}");
    ensure!(price.contains("relent-outcome: stop=Succeeded, attempts=3"), "{price}");

    // A POST that may have been executed is not sent again. The service's own answer comes back, with the reason.
    let order = curl(&["--silent", "--include", "--data", "tea", &format!("{shop}/orders")])?;
    ensure!(order.starts_with("HTTP/1.1 503") && order.ends_with("busy\n"), "{order}");
    ensure!(order.contains("relent-outcome: stop=UnsafeToRepeat, attempts=1"), "{order}");

    proxy.drain();
    ensure!(proxy.join().cut == 0, "nothing was in flight");
    Ok(())
}

/// Runs curl, and shows what it prints.
fn curl(args: &[&str]) -> Result<String> {
    let output = Command::new("curl").args(args).output().context("this example needs curl")?;
    let printed = String::from_utf8(output.stdout)?.replace("\r\n", "\n");
    let of_interest =
        |line: &&str| line.starts_with("HTTP/") || line.starts_with("relent-") || !line.contains(": ");
    let path = args.last().and_then(|url| url.split('/').nth(3)).unwrap_or_default();
    let lines: Vec<_> = printed.lines().filter(of_interest).filter(|line| !line.is_empty()).collect();
    show(&format!("curl /{path}:\n  {}\n", lines.join("\n  ")));
    Ok(printed)
}

#[allow(clippy::print_stdout, reason = "the example shows what came back")]
fn show(text: &str) {
    print!("{text}");
}
