//! Attempt credit: layers that retry share one allowance, and their attempts never multiply.

mod account;
mod layers;
mod siblings;
mod timeout;
