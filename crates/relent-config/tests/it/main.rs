//! What the policy file's reader takes, what it refuses, and how it says so.

mod budgets;
mod cases;
mod defaults;
mod facts;
mod faults;
mod files;
mod grpc;
mod policies;
mod properties;
mod text;
