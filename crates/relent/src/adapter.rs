//! Thin adapters to other crates' clients, a feature each. What they decide, the layers below them decide.

pub mod reqwest;
