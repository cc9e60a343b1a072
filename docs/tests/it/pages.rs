//! Every page is compiled, and every policy file on it is read.

use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = include_str!("../../src/lib.rs");

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files below a folder, by their path from `docs/`, each with its text.
fn pages(below: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(below).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.strip_prefix(folder()).expect("it is below").to_string_lossy().into_owned();
            found.push((name, fs::read_to_string(&path).expect("it can be read")));
        }
    }
}

#[test]
fn every_page_is_compiled() {
    let mut found = Vec::new();
    pages(&folder(), &mut found);
    assert!(!found.is_empty());
    for (page, _) in found {
        assert!(LIST.contains(&format!("include_str!(\"../{page}\")")), "{page} is not in docs/src/lib.rs");
    }
}

#[test]
fn every_policy_file_is_valid() {
    let mut found = Vec::new();
    pages(&folder(), &mut found);
    let mut files = 0;
    for (page, text) in found {
        for block in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            if let Err(errors) = relent_config::parse(&page, block) {
                panic!("{errors}");
            }
            files += 1;
        }
    }
    assert!(files > 0);
}
