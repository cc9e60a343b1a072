//! The last real outcome of a call, over a wait.

use std::pin::Pin;
use std::sync::Arc;

use http::{Response, response};
use relent::http::{Keeping, Kept, ReplayMemory, RetryBody, without_body};
use relent_core::Cause;

use super::Answer;
use crate::response::LiveBody;

/// How the last attempt ended.
pub(super) enum Last {
    /// With a response, whose body is read to memory meanwhile, so that its connection is free.
    Response(Box<response::Parts>, Pin<Box<Keeping<LiveBody>>>),
    /// Without one.
    Error(Cause, String),
}

impl Last {
    pub(super) fn response(response: Response<LiveBody>, memory: &Arc<ReplayMemory>) -> Last {
        let (parts, body) = response.into_parts();
        Last::Response(Box::new(parts), Box::pin(Keeping::new(body, memory)))
    }
}

/// The response as it was kept; one that was too long comes without its body.
pub(super) fn as_kept(
    mut parts: response::Parts,
    mut keeping: Pin<Box<Keeping<LiveBody>>>,
    memory: &Arc<ReplayMemory>,
) -> Answer {
    let kept = keeping.as_mut().finish(memory);
    if kept.is_none() {
        without_body(&mut parts.headers);
    }
    Response::from_parts(parts, RetryBody::kept(kept.unwrap_or_else(Kept::nothing)))
}
