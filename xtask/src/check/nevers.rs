//! What a crate must never depend on, read off cargo's own graph: with every feature on, for every platform, through
//! any number of crates between. A wall that only the prose knows falls with the first convenient import.

use anyhow::Result;

use crate::graph::{Graph, Member, Purpose};
use crate::house::House;
use crate::report::{Finding, Verdict};

struct Never {
    who: &'static str,
    whom: &'static [&'static str],
    why: &'static str,
}

const NEVERS: &[Never] = &[
    Never {
        who: "relent-sim",
        whom: &["relent", "relent-proxy", "tokio", "http"],
        why: "the simulator drives the core in its own time",
    },
    Never {
        who: "relent-config",
        whom: &["relent", "relent-proxy", "relent-sim"],
        why: "the policy file is read alike by all of them",
    },
    Never {
        who: "relent",
        whom: &["relent-config", "relent-idempotency"],
        why: "the library takes values; the two halves of a keyed request meet on the wire",
    },
    Never {
        who: "relent-idempotency",
        whom: &["relent"],
        why: "the two halves of a keyed request meet on the wire",
    },
    Never { who: "relent-proxy", whom: &["relent-sim"], why: "they share the policy, not each other" },
];

const CORE: &str = "relent-core";
/// What the core may depend on: loom, in builds that explore interleavings.
const CORE_MAY: (&str, &str) = ("loom", "cfg(relent_loom)");
const PROGRAM: &str = "relent-cli";
const KIT: &str = "relent-testkit";
/// Packages that only serve this repository. A folder ends in `/` where all below it are meant.
const UNPUBLISHED: &[&str] = &["crates/relent-testkit", "xtask", "bench", "docs", "examples/"];

/// Other retry and breaker libraries: what they do is ours to do; comparisons live outside the workspace.
const RIVALS: &[&str] = &[
    "again",
    "backoff",
    "backon",
    "backoff-rs",
    "exponential-backoff",
    "failsafe",
    "futures-retry",
    "recloser",
    "reqwest-retry",
    "retry",
    "retry-policies",
    "tokio-retry",
    "tokio-retry2",
    "tower-resilience",
    "tower-resilience-circuitbreaker",
    "tower-resilience-core",
    "tower-resilience-retry",
    "tryhard",
];

const SHIPPED: &[Purpose] = &[Purpose::Normal, Purpose::Build];
const ANY: &[Purpose] = &[Purpose::Normal, Purpose::Build, Purpose::Dev];

pub(crate) fn check(house: &House) -> Result<Verdict> {
    Ok(Verdict::of(broken(&house.graph), format_args!("{} packages", house.graph.members.len())))
}

fn broken(graph: &Graph) -> Vec<Finding> {
    let mut findings = walls(graph);
    findings.extend(graph.members.iter().flat_map(manifest));
    findings.extend(rivals(graph));
    findings
}

fn walls(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for never in NEVERS {
        let Some(member) = graph.member(never.who) else { continue };
        for whom in never.whom {
            if let Some(way) = graph.way(member, whom, SHIPPED) {
                let what = format_args!("must not depend on {whom} ({}): {}", never.why, way.join(" -> "));
                findings.push(Finding::at(&place(member), what));
            }
        }
    }
    findings
}

/// Rules that one manifest alone can break.
fn manifest(member: &Member) -> Vec<Finding> {
    let mut broken = Vec::new();
    for dependency in &member.declared {
        let allowed = dependency.name == CORE_MAY.0 && dependency.target.as_deref() == Some(CORE_MAY.1);
        let shipped = SHIPPED.contains(&dependency.purpose);
        if member.name == CORE && shipped && !allowed {
            broken.push(format!(
                "{CORE} depends on nothing, but {} under {}: {}",
                CORE_MAY.0, CORE_MAY.1, dependency.name
            ));
        }
        if dependency.name == PROGRAM {
            broken.push(format!("nothing depends on the program ({PROGRAM})"));
        }
        if dependency.name == KIT && shipped {
            broken.push(format!("{KIT} may only be a dev-dependency"));
        }
    }
    if member.published
        && UNPUBLISHED.iter().any(|place| member.folder == *place || in_folder(&member.folder, place))
    {
        broken.push("is for this repository only; add `publish = false`".to_owned());
    }
    broken.into_iter().map(|what| Finding::at(&place(member), what)).collect()
}

fn rivals(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rival in RIVALS {
        for member in &graph.members {
            if let Some(way) = graph.way(member, rival, ANY) {
                let what = format_args!("brings in {rival}, a library like ours: {}", way.join(" -> "));
                findings.push(Finding::at(&place(member), what));
            }
        }
    }
    findings
}

fn place(member: &Member) -> String {
    format!("{}/Cargo.toml", member.folder)
}

fn in_folder(folder: &str, place: &str) -> bool {
    place.ends_with('/') && folder.starts_with(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Declared;

    /// A graph of `from -> to` lines; `=>` is a dev-dependency. Every `from` named with a folder is a member.
    fn graph(members: &[&str], lines: &[&str]) -> Graph {
        let mut graph = Graph::default();
        for line in lines {
            let (from, to, purpose) = match line.split_once(" => ") {
                Some((from, to)) => (from, to, Purpose::Dev),
                None => {
                    line.split_once(" -> ").map(|(from, to)| (from, to, Purpose::Normal)).expect("an arrow")
                }
            };
            for name in [from, to] {
                graph.names.insert(name.into(), name.into());
            }
            graph.edges.entry(from.into()).or_default().push((to.into(), purpose));
        }
        for folder in members {
            let name = folder.strip_prefix("crates/").unwrap_or(folder).to_owned();
            let edges = graph.edges.get(&name).cloned().unwrap_or_default();
            let declared =
                edges.into_iter().map(|(name, purpose)| Declared { name, purpose, target: None }).collect();
            graph.names.insert(name.clone(), name.clone());
            graph.members.push(Member {
                id: name.clone(),
                name,
                folder: (*folder).to_owned(),
                published: folder.starts_with("crates/") && *folder != "crates/relent-testkit",
                features: Vec::new(),
                declared,
            });
        }
        graph
    }

    fn found(members: &[&str], lines: &[&str]) -> Vec<String> {
        broken(&graph(members, lines)).into_iter().map(|Finding(finding)| finding).collect()
    }

    #[test]
    fn the_house_as_designed_breaks_nothing() {
        let members = [
            "crates/relent-core",
            "crates/relent",
            "crates/relent-config",
            "crates/relent-idempotency",
            "crates/relent-proxy",
            "crates/relent-sim",
            "crates/relent-cli",
            "crates/relent-testkit",
            "xtask",
        ];
        let lines = [
            "relent -> relent-core",
            "relent -> tokio",
            "relent => relent-testkit",
            "relent-testkit -> relent",
            "relent-core => relent-testkit",
            "relent-config -> relent-core",
            "relent-idempotency -> relent-core",
            "relent-proxy -> relent",
            "relent-proxy -> relent-config",
            "relent-proxy -> relent-idempotency",
            "relent-sim -> relent-core",
            "relent-sim -> relent-config",
            "relent-sim => tokio",
            "relent-cli -> relent-proxy",
            "relent-cli -> relent-sim",
        ];
        assert_eq!(found(&members, &lines), [""; 0]);
    }

    #[test]
    fn a_wall_is_broken_through_others_too_and_the_way_is_shown() {
        let lines = ["relent-sim -> relent-config", "relent-config -> toml", "toml -> tokio", "toml => http"];
        let reason = "the simulator drives the core in its own time";
        assert_eq!(
            found(&["crates/relent-sim", "crates/relent-config"], &lines),
            [format!(
                "crates/relent-sim/Cargo.toml: must not depend on tokio ({reason}): \
                 relent-sim -> relent-config -> toml -> tokio"
            )]
        );
    }

    #[test]
    fn each_wall_of_the_design_stands() {
        let pairs = [
            ("relent-sim", "relent"),
            ("relent-sim", "http"),
            ("relent-sim", "relent-proxy"),
            ("relent-config", "relent"),
            ("relent-config", "relent-proxy"),
            ("relent-config", "relent-sim"),
            ("relent", "relent-config"),
            ("relent", "relent-idempotency"),
            ("relent-idempotency", "relent"),
            ("relent-proxy", "relent-sim"),
            ("relent-core", "serde"),
            ("relent", "relent-cli"),
            ("relent-cli", "relent-testkit"),
        ];
        for (who, whom) in pairs {
            let found = found(&[&format!("crates/{who}")], &[&format!("{who} -> {whom}")]);
            assert_eq!(found.len(), 1, "{who} -> {whom}: {found:?}");
            assert!(found[0].starts_with(&format!("crates/{who}/Cargo.toml: ")), "{found:?}");
        }
    }

    #[test]
    fn the_core_may_have_loom_under_its_own_cfg_only() {
        let mut graph = graph(&["crates/relent-core"], &["relent-core -> loom"]);
        assert_eq!(broken(&graph).len(), 1);
        graph.members[0].declared[0].target = Some("cfg(relent_loom)".into());
        assert_eq!(broken(&graph), []);
    }

    #[test]
    fn the_program_is_nobodys_dependency_and_the_kit_nobodys_but_for_tests() {
        assert_eq!(found(&["xtask"], &["xtask => relent-cli"]).len(), 1);
        assert_eq!(found(&["bench"], &["bench => relent-testkit"]), [""; 0]);
        assert_eq!(found(&["bench"], &["bench -> relent-testkit"]).len(), 1);
    }

    #[test]
    fn rivals_are_found_behind_dev_dependencies() {
        let lines = ["relent => reqwest-middleware", "reqwest-middleware -> backon"];
        assert_eq!(
            found(&["crates/relent"], &lines),
            [
                "crates/relent/Cargo.toml: brings in backon, a library like ours: relent -> reqwest-middleware -> backon"
            ]
        );
    }

    #[test]
    fn what_serves_the_repository_only_is_not_published() {
        let mut graph = graph(&["examples/reqwest-client"], &[]);
        assert_eq!(broken(&graph), []);
        graph.members[0].published = true;
        assert_eq!(
            broken(&graph),
            [Finding(
                "examples/reqwest-client/Cargo.toml: is for this repository only; add `publish = false`"
                    .into()
            )]
        );
    }
}
