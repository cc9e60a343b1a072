//! The core builds where there is no operating system, and the library where there is no thread: on the targets whose
//! standard library is installed beside the toolchain. CI needs none of them.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::commands::all;
use crate::cargo;
use crate::house::House;
use crate::report::Verdict;

/// What is built where. A bare-metal target must have 64-bit atomics, since the core counts with them: the smaller Cortex-M
/// and RISC-V chips have none.
const BUILDS: &[(&str, &[&[&str]])] = &[
    ("wasm32-unknown-unknown", &[&["-p", "relent-core"], &["-p", "relent", "--no-default-features"]]),
    ("riscv64gc-unknown-none-elf", &[&["-p", "relent-core"]]),
    ("aarch64-unknown-none", &[&["-p", "relent-core"]]),
];

pub(super) fn check(house: &House) -> Result<Verdict> {
    let (mut commands, mut built, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (target, packages) in BUILDS {
        if !is_installed(&house.root, target)? {
            println!("skipped: {target} is not installed (rustup target add {target})");
            missing.push(*target);
            continue;
        }
        built.push(*target);
        for package in *packages {
            let mut command = cargo::command(&house.root);
            command.args(["build", "--quiet"]).args(*package).args(["--target", target]);
            commands.push(command);
        }
    }
    if built.is_empty() {
        return Ok(Verdict::Skipped(format!(
            "no target is installed: rustup target add {}",
            missing.join(" ")
        )));
    }
    Ok(match all(commands)? {
        Verdict::Passed(_) => Verdict::Passed(said(&built, &missing)),
        failed => failed,
    })
}

fn said(built: &[&str], missing: &[&str]) -> String {
    match missing {
        [] => built.join(", "),
        _ => format!("{}; not installed: {}", built.join(", "), missing.join(", ")),
    }
}

/// Whether the toolchain has this target's standard library.
fn is_installed(root: &Path, target: &str) -> Result<bool> {
    let mut rustc = Command::new("rustc");
    rustc.current_dir(root).args(["--print", "target-libdir", "--target", target]).stderr(Stdio::inherit());
    let output = rustc.output().context("cannot run rustc")?;
    if !output.status.success() {
        bail!("rustc knows no target {target} ({})", output.status);
    }
    let folder = String::from_utf8(output.stdout).context("rustc printed no text")?;
    Ok(Path::new(folder.trim()).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_said() {
        assert_eq!(said(&["a", "b"], &[]), "a, b");
        assert_eq!(said(&["a"], &["b", "c"]), "a; not installed: b, c");
    }
}
