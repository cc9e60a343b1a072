//! Budgets by name: one allowance for handles that stand side by side.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use relent_core::{Budget, BudgetConfig, Policy};

use crate::handles::Mutexes;
use crate::timer::{Clock, SystemTimer};

/// The most names that a registry takes.
const MOST: usize = 1024;

/// A registry of budgets that handles share by name.
///
/// Every handle has a budget of its own. Where several handles call one target, and none of them stands inside of another,
/// they may share one: ask the registry for it by name, with the policy that describes it. Whoever asks first has it
/// built; who asks later, with the same description, gets the same.
///
/// Clones share their budgets. Up to 1024 names.
///
/// ```
/// use relent::{Budgets, Policy, Retry};
///
/// let budgets = Budgets::new();
/// let policy = Policy::default();
/// let reads = Retry::new(policy.clone()).budget(budgets.get("payments", &policy)?);
/// let writes = Retry::new(policy.clone()).budget(budgets.get("payments", &policy)?);
///
/// reads.budget_balance();
/// assert_eq!(budgets.find("payments").map(|_| ()), Some(()));
/// assert!(budgets.find("orders").is_none());
/// # let _ = writes;
/// # Ok::<(), relent::BudgetsError>(())
/// ```
#[derive(Clone)]
pub struct Budgets<T = SystemTimer> {
    timer: T,
    named: Arc<Mutex<BTreeMap<String, Named>>>,
}

/// A budget, and what it was built from.
struct Named {
    config: BudgetConfig,
    budget: Arc<dyn Budget>,
}

/// Why a registry does not give a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetsError {
    /// The policy has no budget.
    NoBudget,
    /// There is one of this name, and it is described otherwise.
    Conflict {
        /// The name.
        name: String,
    },
    /// There are 1024 already.
    TooMany,
}

impl Budgets {
    /// A registry without budgets.
    #[must_use]
    pub fn new() -> Budgets {
        Budgets::with_timer(SystemTimer)
    }
}

impl Default for Budgets {
    /// A registry without budgets.
    fn default() -> Budgets {
        Budgets::new()
    }
}

impl<T: Clock> Budgets<T> {
    /// The same on another timer: the one that the handles are on.
    #[must_use]
    pub fn with_timer(timer: T) -> Budgets<T> {
        Budgets { timer, named: Arc::default() }
    }

    /// The budget of this name; if there is none, a full one as `policy` describes it.
    ///
    /// # Errors
    /// [`BudgetsError`] if the policy has no budget, if it describes another one than the name stands for (see
    /// [`replace`](Budgets::replace)), or if there are too many.
    pub fn get(&self, name: &str, policy: &Policy) -> Result<Arc<dyn Budget>, BudgetsError> {
        let config = *policy.budget().ok_or(BudgetsError::NoBudget)?;
        let mut named = self.named();
        match named.get(name) {
            Some(known) if known.config == config => Ok(Arc::clone(&known.budget)),
            Some(_) => Err(BudgetsError::Conflict { name: name.to_owned() }),
            None if named.len() >= MOST => Err(BudgetsError::TooMany),
            None => {
                let budget = config.build::<Mutexes>(policy.attempts(), self.timer.now());
                named.insert(name.to_owned(), Named { config, budget: Arc::clone(&budget) });
                Ok(budget)
            }
        }
    }

    /// The budget of this name from now on, as `policy` describes it: for a configuration that is read again. If the
    /// description has changed, the new one starts with the balance of the old, or full, whichever is less. Handles keep
    /// the budget that they were made with.
    ///
    /// # Errors
    /// [`BudgetsError`] if the policy has no budget, or if there are too many.
    pub fn replace(&self, name: &str, policy: &Policy) -> Result<Arc<dyn Budget>, BudgetsError> {
        let config = *policy.budget().ok_or(BudgetsError::NoBudget)?;
        let mut named = self.named();
        let Some(known) = named.get_mut(name) else {
            drop(named);
            return self.get(name, policy);
        };
        if known.config != config {
            let now = self.timer.now();
            let budget = config.build::<Mutexes>(policy.attempts(), now);
            budget.lower_to(known.budget.balance(now), now);
            *known = Named { config, budget };
        }
        Ok(Arc::clone(&known.budget))
    }

    /// The budget of this name, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<dyn Budget>> {
        self.named().get(name).map(|known| Arc::clone(&known.budget))
    }

    fn named(&self) -> MutexGuard<'_, BTreeMap<String, Named>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Budgets<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_map().entries(named.iter().map(|(name, known)| (name, &known.budget))).finish()
    }
}

impl fmt::Display for BudgetsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BudgetsError::NoBudget => {
                f.write_str("the policy has no budget to share: describe one, or leave the handle without")
            }
            BudgetsError::Conflict { name } => {
                write!(
                    f,
                    "the budget {name:?} is described otherwise already: give it one description, or take replace()"
                )
            }
            BudgetsError::TooMany => {
                write!(f, "there are {MOST} budgets already: name targets, not requests")
            }
        }
    }
}

impl std::error::Error for BudgetsError {}
