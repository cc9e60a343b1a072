//! Read policies from a file, so that operators change them without a build, and show them what is wrong with it.

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;

use relent::Retry;

fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("relent.toml");
    let config = relent_config::load(&file)?;
    let api = Retry::new(config.policy("api")?.clone());
    let reports = Retry::new(config.policy("reports")?.clone());
    assert_eq!(api.policy().deadline(), Some(Duration::from_secs(2)));
    assert_eq!(reports.policy().attempts(), 2);

    let mut answers = [Err(io::Error::from(io::ErrorKind::TimedOut)), Ok(7)].into_iter();
    assert_eq!(api.run_blocking(|_| answers.next().unwrap_or(Ok(0)))?, 7);

    // A file with a fault gives nothing, and says where and how to mend it.
    let errors = relent_config::parse("relent.toml", "version = 1\n[policy.api]\natempts = 4\n")
        .expect_err("atempts is no field");
    let shown = errors.to_string();
    assert!(shown.starts_with("relent.toml:3:1: "), "{shown}");
    assert!(shown.contains("attempts"), "{shown}");

    // So does a name that the file has not.
    let unknown = config.policy("apy").expect_err("apy is no policy").to_string();
    assert!(unknown.contains("api"), "{unknown}");
    Ok(())
}
