//! The configuration as the workers use it: routes by reference, and what all workers share for each target.

use std::net::SocketAddr;
use std::sync::Arc;

use relent::Handles;
use relent::http::ReplayMemory;
use relent::http::wire::Stamp;
use relent::timer::{Clock, SystemTimer};
use relent_config::{Config, Matcher, ProxyConfig};
use relent_core::Policy;

use crate::access::AccessLog;
use crate::limit::Limits;
use crate::metrics::{Gauges, TargetNames};
use crate::upstream::Upstream;

/// Everything that is fixed at the start.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) proxy: ProxyConfig,
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    pub(crate) targets: Vec<Target>,
    pub(crate) routes: Vec<Route>,
    /// Whether a route is for some hosts only.
    pub(crate) hosts_matter: bool,
    pub(crate) limits: Arc<Limits>,
    pub(crate) log: AccessLog,
}

/// An upstream under a policy, with what its calls share: one budget, one breaker, one memory, over all workers.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its place in the plan's list.
    pub(crate) place: usize,
    /// The upstream's place in the plan's list.
    pub(crate) upstream: usize,
    pub(crate) policy_name: String,
    pub(crate) policy: Policy,
    pub(crate) handles: Handles,
    pub(crate) memory: Arc<ReplayMemory>,
    pub(crate) stamp: Stamp,
}

/// Which requests go to which target.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) matcher: Matcher,
    pub(crate) target: usize,
}

impl Plan {
    /// `config` has been checked: its routes name upstreams and policies that exist.
    pub(crate) fn new(config: Config, proxy: ProxyConfig, log: AccessLog) -> Plan {
        let names: Vec<String> = config.upstreams.keys().cloned().collect();
        let upstreams: Vec<_> =
            config.upstreams.into_iter().map(|(name, facts)| Arc::new(Upstream::new(name, facts))).collect();
        let mut plan = Plan {
            limits: Arc::new(Limits::new(&proxy)),
            log,
            proxy,
            upstreams,
            targets: Vec::new(),
            hosts_matter: config.routes.iter().any(|route| route.matcher.host.is_some()),
            routes: Vec::new(),
        };
        for route in config.routes {
            let upstream = names.iter().position(|name| *name == route.upstream);
            let (Some(upstream), Some(policy)) = (upstream, config.policies.get(&route.policy)) else {
                continue;
            };
            let target = plan.target(upstream, &route.policy, policy);
            plan.routes.push(Route { matcher: route.matcher, target });
        }
        plan
    }

    /// The target of this upstream and policy; two routes to it share it.
    fn target(&mut self, upstream: usize, name: &str, policy: &Policy) -> usize {
        let same = |target: &Target| target.upstream == upstream && target.policy_name == name;
        if let Some(place) = self.targets.iter().position(same) {
            return place;
        }
        let place = self.targets.len();
        self.targets.push(Target {
            place,
            upstream,
            policy_name: name.to_owned(),
            policy: policy.clone(),
            handles: Handles::new(policy, SystemTimer.now()),
            memory: Arc::new(ReplayMemory::new(policy.replay_total())),
            stamp: Stamp::new(policy.attempt_timeout()),
        });
        place
    }

    /// Whether a peer may override what the policy says.
    pub(crate) fn trusts(&self, peer: Option<SocketAddr>) -> bool {
        let trusted = &self.proxy.trusted_peers;
        !trusted.is_empty() && peer.is_some_and(|peer| trusted.iter().any(|range| range.contains(peer.ip())))
    }

    /// Upstream and policy of each target, in their order.
    pub(crate) fn target_names(&self) -> Vec<TargetNames> {
        let names = |target: &Target| TargetNames {
            upstream: self.upstream_of(target).name.clone(),
            policy: target.policy_name.clone(),
        };
        self.targets.iter().map(names).collect()
    }

    pub(crate) fn upstream_of(&self, target: &Target) -> &Arc<Upstream> {
        &self.upstreams[target.upstream]
    }
}

impl Gauges for Plan {
    fn budget_balance(&self, target: usize) -> Option<u64> {
        let budget = self.targets[target].handles.budget()?;
        Some(budget.balance(SystemTimer.now()))
    }

    fn waiting(&self, target: usize) -> u32 {
        self.targets[target].handles.waiting()
    }

    fn replay_bytes(&self, target: usize) -> u64 {
        self.targets[target].memory.used()
    }

    fn requests_in_flight(&self) -> u32 {
        self.limits.in_flight()
    }

    fn access_log_dropped(&self) -> u64 {
        self.log.dropped()
    }
}
