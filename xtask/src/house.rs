//! The house as the checks see it: where it stands, its packages, its source files.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cargo;
use crate::graph::Graph;
use crate::source::{self, SourceFile};

#[derive(Debug)]
pub(crate) struct House {
    pub(crate) root: PathBuf,
    /// Where cargo builds; separate builds (loom) go below it.
    pub(crate) target: PathBuf,
    pub(crate) graph: Graph,
    pub(crate) sources: Vec<SourceFile>,
}

impl House {
    pub(crate) fn survey() -> Result<Self> {
        let root = root();
        let metadata = cargo::metadata(&root)?;
        let sources = source::files(&root)?;
        Ok(Self {
            target: metadata.target_directory.clone(),
            graph: Graph::new(&metadata, &root),
            sources,
            root,
        })
    }
}

/// The workspace's folder: the parent of xtask's. cargo tells it at run time, so that a target directory that moved
/// along with its checkout still finds the right one.
pub(crate) fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().expect("xtask stands in a folder of the workspace").to_path_buf()
}
