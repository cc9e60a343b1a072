//! What a policy file comes to: valid policies, and plain facts for the proxy.

use std::collections::BTreeMap;
use std::fmt;

use relent_core::Policy;

use crate::{ProxyConfig, Route, Setting, Upstream, nearest, quoted, settings};

/// How many names an error lists.
const LISTED: usize = 12;

/// A policy file, read and checked: whatever is in here is valid and fits together.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Config {
    /// The policies, by name.
    pub policies: BTreeMap<String, Policy>,
    /// Where the proxy listens; `None` in a file for the library alone.
    pub proxy: Option<ProxyConfig>,
    /// The proxy's targets, by name.
    pub upstreams: BTreeMap<String, Upstream>,
    /// The proxy's routes, in their order; the first that matches wins. Each names a policy and an upstream that exist,
    /// and none is hidden by those before it.
    pub routes: Vec<Route>,
    /// Where the file sets the fields of each policy, by their names in [`Setting`](crate::Setting).
    pub(crate) origins: BTreeMap<String, BTreeMap<&'static str, String>>,
}

impl Config {
    /// The policy of this name.
    ///
    /// # Errors
    /// [`UnknownPolicy`], with the nearest name that there is.
    pub fn policy(&self, name: &str) -> Result<&Policy, UnknownPolicy> {
        self.policies.get(name).ok_or_else(|| UnknownPolicy {
            name: name.to_owned(),
            mend: offer(name, self.policies.keys().map(String::as_str)),
        })
    }
}

impl Config {
    /// Every field of a policy as the file would write it, and where it comes from; empty if there is no such policy.
    ///
    /// ```
    /// use relent_config::{Origin, parse};
    ///
    /// let config = parse("relent.toml", "version = 1\n[policy.api]\nattempts = 4\n")?;
    /// let settings = config.settings("api");
    /// let of = |name| settings.iter().find(|setting| setting.name == name).unwrap();
    /// assert_eq!((of("attempts").value.as_str(), of("attempts").origin.to_string()), ("4", "relent.toml:3:12".into()));
    /// assert_eq!((of("deadline").value.as_str(), &of("deadline").origin), ("15s", &Origin::Default));
    /// # Ok::<(), relent_config::ConfigErrors>(())
    /// ```
    pub fn settings(&self, policy: &str) -> Vec<Setting> {
        let nowhere = BTreeMap::new();
        let origins = self.origins.get(policy);
        let known = origins.is_some();
        match self.policies.get(policy) {
            Some(policy) => settings::of(policy, origins.unwrap_or(&nowhere), known),
            None => Vec::new(),
        }
    }
}

/// A name that no policy of the file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    name: String,
    mend: Option<String>,
}

impl UnknownPolicy {
    /// The name that was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mend = self.mend.as_deref().unwrap_or("the file defines none");
        write!(f, "there is no policy {}: {mend}", quoted::named(&self.name))
    }
}

impl std::error::Error for UnknownPolicy {}

/// What to say of a name that isn't among `names`: the nearest, else all of them; `None` if there are none.
pub(crate) fn offer<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(near) = nearest(name, names.clone()) {
        return Some(format!("did you mean {}?", quoted::named(near)));
    }
    let listed: Vec<_> = names.clone().take(LISTED).map(|name| quoted::named(name).to_string()).collect();
    let more = names.count() - listed.len();
    match (listed.len(), more) {
        (0, _) => None,
        (_, 0) => Some(format!("there are {}", listed.join(", "))),
        (_, more) => Some(format!("there are {} and {more} more", listed.join(", "))),
    }
}
