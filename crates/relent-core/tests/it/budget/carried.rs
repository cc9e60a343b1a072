//! A budget that takes another one's place carries on with the lower of that one's balance and its own.

use relent_core::{BudgetConfig, CostConfig, Ratio, RatioConfig, ThrottleConfig, TokenClass, WindowedConfig};

use crate::rig::{at, budget_of};

#[test]
fn the_lower_of_balance_and_new_capacity() {
    let configs: [BudgetConfig; 4] = [
        RatioConfig { reserve: Some(20), ..RatioConfig::new(Ratio::percent(10)) }.into(),
        WindowedConfig { min_per_second: 2, ..WindowedConfig::FINAGLE }.into(),
        ThrottleConfig { max_tokens: 100, ..ThrottleConfig::GRPC }.into(),
        CostConfig { capacity: 100, ..CostConfig::AWS_STANDARD }.into(),
    ];
    for config in configs {
        let full = budget_of(&config, 3).balance(at(0));
        for carried in [0, 1, full - 1, full, full + 7, u64::MAX] {
            let budget = budget_of(&config, 3);
            budget.lower_to(carried, at(0));
            assert_eq!(budget.balance(at(0)), carried.min(full), "{config:?}");
        }
        let budget = budget_of(&config, 3);
        budget.lower_to(0, at(0));
        let refused = budget.clone().withdraw(TokenClass::Transient, at(0)).is_none();
        // gRPC's bucket grants while it is over half full; its balance counts further failures.
        assert!(refused || config.kind() == "throttle");
    }
}
