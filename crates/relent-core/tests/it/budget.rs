//! Budgets against a brute-force count and the peers' published numbers: never a token too many, and hardly one too few.

mod adaptive;
mod books;
mod carried;
mod concurrency;
mod cost;
mod interleaving;
mod load;
mod rates;
mod reserve;
mod share;
mod throttle;
mod windowed;
