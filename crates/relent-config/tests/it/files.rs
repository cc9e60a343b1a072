//! Files that can't be read, or hold no text.

use std::error::Error;
use std::fs;
use std::io;
use std::path::PathBuf;

use relent_config::{LONGEST_FILE, load};

/// A file of this test run, with these bytes.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).expect("the target directory can be written");
    path
}

/// What is said of the file, its name left out.
fn said(path: &PathBuf) -> String {
    let errors = load(path).expect_err("the file is refused");
    errors.to_string().replace(&path.display().to_string(), "FILE")
}

#[test]
fn a_good_file() {
    let path = file("good.toml", b"version = 1\n[policy.a]\n");
    assert!(load(&path).expect("valid").policy("a").is_ok());
}

#[test]
fn no_file() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nowhere/relent.toml");
    assert_eq!(said(&path), "FILE: there is no such file\n  = mend: check the path");
    let errors = load(&path).expect_err("the file is refused");
    let cause = errors.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    assert_eq!(cause, Some(io::ErrorKind::NotFound));
    assert!(errors.iter().all(|fault| fault.place().is_none() && fault.line().is_none()));
}

#[test]
fn a_directory() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    assert_eq!(said(&path), "FILE: this is a directory\n  = mend: name the file in it");
}

#[test]
fn too_long_a_file() {
    let mut bytes = b"version = 1\n#".to_vec();
    bytes.resize(LONGEST_FILE as usize, b' ');
    assert!(load(file("longest.toml", &bytes)).is_ok());
    bytes.push(0xff);
    let path = file("too_long.toml", &bytes);
    assert_eq!(said(&path), "FILE: the file is over 1 MiB\n  = mend: divide it; a policy takes a few lines");
    let text = " ".repeat(LONGEST_FILE as usize + 1);
    assert!(relent_config::parse("f", &text).is_err_and(|e| e.to_string().contains("over 1 MiB")));
}

#[test]
fn no_utf8() {
    let path = file("latin1.toml", b"version = 1\n# \xc3\xa4 caf\xe9\n");
    let expected = "FILE:2:8: this is not UTF-8\n  |\n2 | # ä caf\u{fffd}\n  |        ^\n  = mend: save the file as UTF-8";
    assert_eq!(said(&path), expected);
    let path = file("bom.toml", b"\xef\xbb\xbf\xff");
    assert!(said(&path).starts_with("FILE:1:1: this is not UTF-8"), "{}", said(&path));
}
