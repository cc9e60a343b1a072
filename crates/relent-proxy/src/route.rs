//! Which route a request takes: the first that is for it.

use crate::plan::{Plan, Target};
use crate::request::Inbound;
use crate::respond::Refusal;

/// The target of the first route for this method, host and path.
pub(crate) fn find<'a>(plan: &'a Plan, inbound: &Inbound) -> Result<&'a Target, Refusal> {
    let head = inbound.head.as_ref().ok_or(Refusal::NoRoute)?;
    let method = head.method.as_str();
    let host = if plan.hosts_matter { head.host() } else { None };
    // `OPTIONS *` asks about the server as a whole (RFC 9110 §9.3.7).
    let path = match head.uri.path() {
        "*" => "/",
        path => path,
    };
    let route = plan.routes.iter().find(|route| route.matcher.matches(method, host, path));
    route.map(|route| &plan.targets[route.target]).ok_or(Refusal::NoRoute)
}
