//! The response as it leaves: without what was meant for this hop, with what the hop before is told.

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode, Version};
use relent::http::wire;
use relent_config::ProxyConfig;
use relent_core::StopReason;

use crate::fields::{self, Seen};
use crate::record::Record;
use crate::respond::Refusal;
use crate::response::ResponseBody;
use crate::retry::Answer;

/// How a call went, for people: only where it is configured.
const OUTCOME: HeaderName = HeaderName::from_static("relent-outcome");

/// What an endpoint answered.
pub(crate) fn answered(
    proxy: &ProxyConfig,
    mut answer: Answer,
    mut record: Record,
) -> Response<ResponseBody> {
    let status = answer.status();
    cleanse(answer.headers_mut(), status, record.seen());
    tell(proxy, answer.headers_mut(), &record);
    *answer.version_mut() = Version::HTTP_11;
    record.answered(status.as_u16());
    answer.map(|body| ResponseBody::upstream(body, record))
}

/// The proxy's own words.
pub(crate) fn refused(
    proxy: &ProxyConfig,
    version: Version,
    refusal: &Refusal,
    mut record: Record,
) -> Response<ResponseBody> {
    record.error(|| refusal.error());
    let mut answer = refusal.response();
    tell(proxy, answer.headers_mut(), &record);
    if version == Version::HTTP_2 {
        answer.headers_mut().remove(header::CONNECTION);
    }
    record.answered(answer.status().as_u16());
    answer.map(|text| ResponseBody::own(text, record))
}

/// Takes out what was meant for this hop.
fn cleanse(headers: &mut HeaderMap, status: StatusCode, seen: Option<Seen>) {
    let seen = seen.unwrap_or_else(|| Seen::of(headers));
    let upgrade = match status {
        StatusCode::SWITCHING_PROTOCOLS => headers.get(header::UPGRADE).cloned(),
        _ => None,
    };
    fields::strip(headers, seen);
    if seen.has_words() {
        wire::consume(headers);
    }
    if let Some(upgrade) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    }
}

/// Tells the hop before what was spent, whether to stop, and how it went.
fn tell(proxy: &ProxyConfig, headers: &mut HeaderMap, record: &Record) {
    if let Some(used) = record.used() {
        wire::report(headers, used);
    }
    let Some((reason, attempts, ambiguous)) = record.stop() else { return };
    wire::refuse(headers, reason);
    if proxy.rate_limited_header && matches!(reason, StopReason::BudgetExhausted | StopReason::BreakerOpen) {
        headers.insert(wire::RATE_LIMITED, HeaderValue::from_static("true"));
    }
    if proxy.outcome_header {
        let doubt = if ambiguous { ", ambiguous" } else { "" };
        let text = format!("stop={}, attempts={attempts}{doubt}", reason.name());
        if let Ok(text) = HeaderValue::try_from(text) {
            headers.insert(OUTCOME, text);
        }
    }
}
