//! Python's grpcio, the second gRPC client and server of the tests: in a folder of its own under the target, so that nothing is
//! installed on the machine. Where there is no Python, or no way to the package, the tests that want it leave themselves out.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::house::House;

/// What is asked of the package index.
const PACKAGE: &str = "grpcio>=1.60";

/// An interpreter that has it; `None`, with a word why, if there is none.
pub(super) fn prepare(house: &House) -> Option<PathBuf> {
    let folder = house.target.join("python");
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if has_it(&python) || (made(&folder) && installed(&python) && has_it(&python)) {
        return Some(python);
    }
    println!("grpcio is left out: it takes python3 with venv, and a way to a package index");
    None
}

fn has_it(python: &Path) -> bool {
    python.is_file() && ran(Command::new(python).args(["-c", "import grpc"]))
}

fn made(folder: &Path) -> bool {
    ran(Command::new("python3").args(["-m", "venv"]).arg(folder))
}

fn installed(python: &Path) -> bool {
    let bounds = ["--quiet", "--disable-pip-version-check", "--timeout", "10", "--retries", "1"];
    ran(Command::new(python).args(["-m", "pip", "install"]).args(bounds).arg(PACKAGE))
}

fn ran(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
