//! Which handle a method is called through: its own, its service's, or the default.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::retry::Retry;

/// Handles by method, as gRPC's service config names them. Clones share it.
pub(super) struct Methods<C, T>(Arc<Table<C, T>>);

struct Table<C, T> {
    others: Retry<C, T>,
    services: HashMap<String, OfService<C, T>>,
}

struct OfService<C, T> {
    others: Option<Retry<C, T>>,
    methods: HashMap<String, Retry<C, T>>,
}

impl<C, T> Methods<C, T> {
    /// One for all.
    pub(super) fn new(others: Retry<C, T>) -> Methods<C, T> {
        Methods(Arc::new(Table { others, services: HashMap::new() }))
    }

    /// The most specific one for a request's path (`/package.Service/Method`).
    pub(super) fn of(&self, path: &str) -> &Retry<C, T> {
        let Table { others, services } = &*self.0;
        if services.is_empty() {
            return others;
        }
        let (service, method) = path.strip_prefix('/').and_then(|p| p.rsplit_once('/')).unwrap_or((path, ""));
        let Some(own) = services.get(service) else { return others };
        own.methods.get(method).or(own.others.as_ref()).unwrap_or(others)
    }
}

impl<C: Clone, T> Methods<C, T> {
    /// Another one for a service.
    pub(super) fn service(&mut self, service: &str, retry: Retry<C, T>) {
        self.own(service).others = Some(retry);
    }

    /// Another one for a method.
    pub(super) fn method(&mut self, service: &str, method: &str, retry: Retry<C, T>) {
        self.own(service).methods.insert(method.to_owned(), retry);
    }

    fn own(&mut self, service: &str) -> &mut OfService<C, T> {
        let table = Arc::make_mut(&mut self.0);
        table.services.entry(service.to_owned()).or_default()
    }
}

impl<C: Clone, T> Clone for Table<C, T> {
    fn clone(&self) -> Self {
        Table { others: self.others.clone(), services: self.services.clone() }
    }
}

impl<C: Clone, T> Clone for OfService<C, T> {
    fn clone(&self) -> Self {
        OfService { others: self.others.clone(), methods: self.methods.clone() }
    }
}

impl<C, T> Default for OfService<C, T> {
    fn default() -> Self {
        OfService { others: None, methods: HashMap::new() }
    }
}

impl<C, T> Clone for Methods<C, T> {
    fn clone(&self) -> Self {
        Methods(Arc::clone(&self.0))
    }
}

impl<C, T> fmt::Debug for Methods<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { others, services } = &*self.0;
        f.debug_struct("Methods").field("others", others).field("services", &services.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, PolicyBuilder};

    #[test]
    fn the_most_specific_handle_is_taken() {
        let retry =
            |attempts| Retry::new(PolicyBuilder::attempts(Policy::builder(), attempts).build().unwrap());
        let mut methods = Methods::new(retry(1));
        let default = methods.clone();
        methods.service("a.B", retry(2));
        methods.method("a.B", "C", retry(3));
        methods.method("d.E", "F", retry(4));
        let attempts = |methods: &Methods<_, _>, path| methods.of(path).policy().attempts();
        for (path, expected) in [
            ("/a.B/C", 3),
            ("/a.B/D", 2),
            ("/a.B/", 2),
            ("/a.b/C", 1),
            ("/d.E/F", 4),
            ("/d.E/G", 1),
            ("a.B/C", 1),
            ("/", 1),
            ("", 1),
            ("/x/a.B/C", 1),
        ] {
            assert_eq!(attempts(&methods, path), expected, "{path}");
            assert_eq!(attempts(&default, path), 1);
        }
    }
}
