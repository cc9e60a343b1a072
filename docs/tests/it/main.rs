//! What the pages say beside their code: tables, lists, and the files that they show.

mod defaults;
mod pages;
mod reasons;
