//! Which requests go to which upstream under which policy.

use crate::Host;

/// A `[[route]]` table: which requests go to which upstream, under which policy. The first that matches wins.
///
/// *Defaults*: every path, host and method.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// Which requests it is for.
    pub matcher: Matcher,
    /// A name in [`Config::upstreams`](crate::Config::upstreams).
    pub upstream: String,
    /// A name in [`Config::policies`](crate::Config::policies).
    pub policy: String,
}

impl Route {
    /// All requests.
    pub fn all(upstream: impl Into<String>, policy: impl Into<String>) -> Route {
        let matcher = Matcher { path: "/".to_owned(), host: None, methods: None };
        Route { matcher, upstream: upstream.into(), policy: policy.into() }
    }
}

/// Which requests a route is for.
///
/// ```
/// use relent_config::Matcher;
///
/// let api = Matcher { path: "/api".to_owned(), host: None, methods: None };
/// assert!(api.matches("GET", None, "/api/users") && api.matches("GET", None, "/api"));
/// assert!(!api.matches("GET", None, "/apiary"), "a prefix ends with a segment");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    /// A prefix of the path, in whole segments: `/api` is for `/api` and `/api/x`, not for `/apiary`; `/api/` for
    /// `/api/x`, not for `/api`; `/` for all.
    pub path: String,
    /// The host of the request, its port aside; `None`: any.
    pub host: Option<Host>,
    /// The methods; `None`: any. Never empty.
    pub methods: Option<Vec<String>>,
}

impl Matcher {
    /// Whether a request with this method, host (its port aside) and path (without query) is meant.
    pub fn matches(&self, method: &str, host: Option<&str>, path: &str) -> bool {
        is_under(path, &self.path)
            && self.host.as_ref().is_none_or(|own| host.is_some_and(|host| own.is(host)))
            && self.methods.as_ref().is_none_or(|own| own.iter().any(|m| m == method))
    }

    /// Whether every request of `other` is of a host and path that `self` is for, whatever the method.
    pub(crate) fn covers_place(&self, other: &Matcher) -> bool {
        is_under(&other.path, &self.path) && (self.host.is_none() || self.host == other.host)
    }
}

/// Whether `path` starts with `prefix`, in whole segments.
fn is_under(path: &str, prefix: &str) -> bool {
    match path.strip_prefix(prefix) {
        Some(rest) => rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'),
        None => false,
    }
}
