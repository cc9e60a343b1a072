//! Thin adapters to other crates' clients, a feature each. What they decide, the layers below them decide.

#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "tonic")]
pub mod tonic;
