//! Thin adapters to other crates' clients, a feature each. What they decide, the layers below them decide.

#[cfg(feature = "hyper-util")]
pub mod hyper_util;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "reqwest-middleware")]
pub mod reqwest_middleware;
#[cfg(feature = "tonic")]
pub mod tonic;
