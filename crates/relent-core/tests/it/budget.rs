//! The `ratio` budget against a brute-force count: never a token too many, and hardly one too few.

mod books;
mod interleaving;
mod load;
mod rates;
mod reserve;
mod share;
