//! Who depends on whom: the workspace's members, and the whole graph below them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use crate::cargo::Metadata;

/// What a dependency is for. A build script's counts as a user's too: it is compiled wherever the crate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Normal,
    Build,
    Dev,
}

impl Purpose {
    fn named(kind: Option<&str>) -> Self {
        match kind {
            Some("dev") => Self::Dev,
            Some("build") => Self::Build,
            _ => Self::Normal,
        }
    }
}

/// A dependency as a member's manifest names it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
    pub(crate) target: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The folder from the root of the repository; "crates/relent".
    pub(crate) folder: String,
    pub(crate) published: bool,
    pub(crate) features: Vec<String>,
    pub(crate) declared: Vec<Declared>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) members: Vec<Member>,
    /// Names by package id; two versions of one crate are two packages.
    pub(crate) names: BTreeMap<String, String>,
    pub(crate) edges: BTreeMap<String, Vec<(String, Purpose)>>,
}

impl Graph {
    pub(crate) fn new(metadata: &Metadata, root: &Path) -> Self {
        let mut graph = Self::default();
        for package in &metadata.packages {
            graph.names.insert(package.id.clone(), package.name.clone());
            if metadata.workspace_members.contains(&package.id) {
                let folder = package.manifest_path.parent().unwrap_or(root);
                graph.members.push(Member {
                    id: package.id.clone(),
                    name: package.name.clone(),
                    folder: folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().replace('\\', "/"),
                    published: package.publish.as_ref().is_none_or(|registries| !registries.is_empty()),
                    features: package.features.keys().cloned().collect(),
                    declared: declared(&package.dependencies),
                });
            }
        }
        for node in &metadata.resolve.nodes {
            let ends = node.deps.iter().flat_map(|edge| {
                edge.dep_kinds.iter().map(|kind| (edge.pkg.clone(), Purpose::named(kind.kind.as_deref())))
            });
            graph.edges.insert(node.id.clone(), ends.collect());
        }
        graph.members.sort_by(|a, b| a.folder.cmp(&b.folder));
        graph
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The shortest way from a member to a package of that name, by name; `first_step` says which of the member's own
    /// dependencies count. Further down dev-dependencies never do: nobody's users compile them.
    pub(crate) fn way<'a>(
        &'a self,
        from: &'a Member,
        to: &str,
        first_step: &[Purpose],
    ) -> Option<Vec<&'a str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut seen = BTreeSet::from([from.id.as_str()]);
        let mut queue = VecDeque::from([from.id.as_str()]);
        while let Some(here) = queue.pop_front() {
            for (next, purpose) in self.edges.get(here).into_iter().flatten() {
                let counts =
                    if here == from.id { first_step.contains(purpose) } else { *purpose != Purpose::Dev };
                if !counts || !seen.insert(next) {
                    continue;
                }
                came_from.insert(next, here);
                if self.name(next) == to {
                    return Some(self.names_along(&came_from, next));
                }
                queue.push_back(next);
            }
        }
        None
    }

    fn names_along<'a>(&'a self, came_from: &BTreeMap<&'a str, &'a str>, end: &'a str) -> Vec<&'a str> {
        let mut steps = vec![self.name(end)];
        let mut here = end;
        while let Some(before) = came_from.get(here) {
            here = before;
            steps.push(self.name(here));
        }
        steps.reverse();
        steps
    }

    fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.names.get(id).map_or(id, String::as_str)
    }
}

fn declared(dependencies: &[crate::cargo::Dependency]) -> Vec<Declared> {
    dependencies
        .iter()
        .map(|dependency| Declared {
            name: dependency.name.clone(),
            purpose: Purpose::named(dependency.kind.as_deref()),
            target: dependency.target.clone(),
        })
        .collect()
}
