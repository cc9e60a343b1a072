//! What a builder refuses, and that what it accepts is kept as said.

use std::time::Duration;

use relent_core::{
    BadStatus, BudgetConfig, Cause, ConcurrencyConfig, CostConfig, Jitter, Policy, PolicyBuilder,
    PolicyError, Ratio, RatioConfig, RatioError, RetriesOnlyConfig, RetryOn, ThrottleConfig, ThrottledConfig,
    WindowedConfig, defaults,
};

use crate::rig::{millis, secs};

fn refused(builder: PolicyBuilder) -> PolicyError {
    builder.build().expect_err("a contradiction")
}

#[test]
fn a16_the_cap_is_part_of_the_primitive() {
    let policy = Policy::exponential(millis(50), secs(1)).build().unwrap();
    assert_eq!((policy.backoff().base(), policy.backoff().cap()), (millis(50), secs(1)));
    let (cap, base) = (millis(99), millis(100));
    assert_eq!(refused(Policy::exponential(base, cap)), PolicyError::CapBelowBase { cap, base });
}

#[test]
fn a17_factors_below_one_are_refused_where_they_are_built() {
    for bad in [Ratio::ZERO, Ratio::from_parts_per_million(1), Ratio::from_parts_per_million(999_999)] {
        assert_eq!(refused(Policy::builder().multiplier(bad)), PolicyError::MultiplierBelowOne(bad));
    }
    assert!(Policy::builder().multiplier(Ratio::ONE).build().is_ok());
}

#[test]
fn a14_a17_jitter_that_could_be_negative_is_refused() {
    let over = Ratio::from_parts_per_million(1_000_001);
    for jitter in [Jitter::Proportional(over), Jitter::Additive(over), Jitter::Additive(Ratio::of(2, 1))] {
        assert!(
            matches!(refused(Policy::builder().jitter(jitter)), PolicyError::JitterAboveOne(_)),
            "{jitter:?}"
        );
    }
    for jitter in [Jitter::Proportional(Ratio::ONE), Jitter::Additive(Ratio::ZERO)] {
        assert!(Policy::builder().jitter(jitter).build().is_ok(), "{jitter:?}");
    }
}

#[test]
fn a17_no_text_makes_a_ratio_that_is_no_number() {
    for text in [
        "NaN", "nan", "inf", "-inf", "infinity", "-1", "-0", "+1", "1e3", "0x1", "", ".", "1.", ".5", " 1",
        "1 ", "1_0", "٣",
    ] {
        assert_eq!(text.parse::<Ratio>(), Err(RatioError::NotANumber), "{text:?}");
    }
    assert_eq!("0.0000001".parse::<Ratio>(), Err(RatioError::TooFine));
    for text in ["4295", "4294.967296", "99999999999999999999", "18446744073709551615"] {
        assert_eq!(text.parse::<Ratio>(), Err(RatioError::TooLarge), "{text:?}");
    }
    for (text, parts) in
        [("0", 0), ("0.1", 100_000), ("1.5", 1_500_000), ("0.100000000", 100_000), ("007", 7_000_000)]
    {
        assert_eq!(text.parse(), Ok(Ratio::from_parts_per_million(parts)), "{text:?}");
    }
    assert_eq!("4294.967295".parse(), Ok(Ratio::from_parts_per_million(u32::MAX)));
}

#[test]
fn every_ratio_reads_as_it_prints() {
    for parts in [0, 1, 10, 99, 100_000, 333_333, 999_999, 1_000_000, 1_000_001, 12_345_678, u32::MAX] {
        let ratio = Ratio::from_parts_per_million(parts);
        assert_eq!(ratio.to_string().parse(), Ok(ratio), "{ratio}");
    }
}

#[test]
fn attempts_of_zero_are_refused() {
    assert_eq!(refused(Policy::builder().attempts(0)), PolicyError::NoAttempts);
    assert!(Policy::builder().attempts(1).build().is_ok());
    assert!(Policy::builder().attempts(u32::MAX).build().is_ok());
}

#[test]
fn a23_there_is_no_magic_zero() {
    assert_eq!(refused(Policy::builder().deadline(Duration::ZERO)), PolicyError::Zero("deadline"));
    let zero = Policy::builder().attempt_timeout(Duration::ZERO);
    assert_eq!(refused(zero), PolicyError::Zero("attempt_timeout"));
    let none = Policy::builder().no_deadline().no_attempt_timeout().build().unwrap();
    assert_eq!((none.deadline(), none.attempt_timeout(), none.is_timed()), (None, None, false));
}

#[test]
fn times_that_contradict_each_other_are_refused() {
    for (builder, field) in [
        (Policy::builder().attempt_timeout(secs(15)), "attempt_timeout"),
        (Policy::builder().attempt_timeout(secs(16)), "attempt_timeout"),
        (Policy::builder().deadline(secs(5)), "attempt_timeout"),
        (Policy::builder().min_attempt_time(secs(5)), "min_attempt_time"),
        (Policy::builder().no_attempt_timeout().min_attempt_time(secs(15)), "min_attempt_time"),
        (Policy::exponential(secs(15), secs(20)), "base"),
        (Policy::exponential(secs(15) - millis(1), secs(20)), "base"),
        (Policy::builder().throttled_base(secs(31)), "throttled_base"),
        (Policy::builder().throttled(ThrottledConfig::from_base(secs(2)).cap(secs(1))), "throttled.cap"),
        (Policy::builder().throttled(ThrottledConfig::default().cap(secs(31))), "throttled.cap"),
        (Policy::builder().floor(millis(101)), "floor"),
    ] {
        let error = refused(builder);
        assert_eq!(error.field(), field, "{error}");
    }
    assert!(Policy::exponential(secs(15) - millis(2), secs(20)).build().is_ok());
    assert!(Policy::exponential(secs(15), secs(20)).attempts(1).build().is_ok(), "nobody waits");
    assert!(Policy::exponential(secs(15), secs(20)).no_deadline().build().is_ok());
}

#[test]
fn lengths_over_a_year_are_refused_by_name() {
    let long = secs(366 * 24 * 3_600);
    for (builder, field) in [
        (Policy::exponential(long, long), "base"),
        (Policy::builder().cap(Duration::MAX), "cap"),
        (Policy::builder().floor(Duration::MAX), "floor"),
        (Policy::builder().attempt_timeout(long), "attempt_timeout"),
        (Policy::builder().deadline(Duration::MAX), "deadline"),
        (Policy::builder().min_attempt_time(long), "min_attempt_time"),
        (Policy::builder().throttled_base(long), "throttled_base"),
        (Policy::builder().max_hint(long), "max_hint"),
        (
            Policy::builder().budget(RatioConfig { window: long, ..RatioConfig::new(Ratio::ONE) }),
            "budget.window",
        ),
        (
            Policy::builder().breaker(RetriesOnlyConfig { window: long, ..RetriesOnlyConfig::DEFAULT }),
            "breaker.window",
        ),
        (Policy::builder().throttled(ThrottledConfig::default().cap(long)), "throttled.cap"),
    ] {
        let error = refused(builder);
        assert!(matches!(error, PolicyError::TooLong { .. }), "{error}");
        assert_eq!(error.field(), field);
    }
}

#[test]
fn b6_a_length_or_a_cap_that_is_none_is_refused_where_it_is_built() {
    assert_eq!(refused(Policy::builder().deadline(Duration::MAX)).field(), "deadline");
    let (base, cap) = (secs(10), millis(100));
    assert_eq!(refused(Policy::exponential(base, cap)), PolicyError::CapBelowBase { cap, base });
    for factor in ["-1", "NaN"] {
        assert_eq!(factor.parse::<Ratio>(), Err(RatioError::NotANumber));
    }
}

#[test]
fn a28_the_time_of_the_whole_call_does_not_pass_for_an_attempts() {
    // Both bounds said as one number: the attempt would have all of it, and there would be no second one.
    let both = Policy::builder().attempt_timeout(secs(2)).deadline(secs(2));
    assert_eq!(
        refused(both),
        PolicyError::AttemptTimeoutNotBelowDeadline { attempt_timeout: secs(2), deadline: secs(2) }
    );
}

#[test]
fn a_limit_for_one_class_is_within_the_attempts() {
    let throttled = |attempts| Policy::builder().throttled(ThrottledConfig::default().attempts(attempts));
    let connect = |attempts| Policy::builder().attempts_on(Cause::Connect, attempts);
    assert_eq!(refused(throttled(0)), PolicyError::Zero("throttled.attempts"));
    assert_eq!(refused(connect(0)), PolicyError::Zero("attempts_on"));
    for (builder, field) in [(throttled(4), "throttled.attempts"), (connect(4), "attempts_on")] {
        assert_eq!(refused(builder), PolicyError::LimitAboveAttempts { field, limit: 4, attempts: 3 });
    }
    let unlisted = Policy::builder().attempts_on(Cause::Status(408), 2);
    assert_eq!(refused(unlisted), PolicyError::LimitOnNotRetried(Cause::Status(408)));
    assert!(throttled(3).attempts_on(Cause::Other, 1).build().is_ok());

    let policy =
        connect(1).attempts_on(Cause::Status(503), 1).attempts_on(Cause::Connect, 2).build().unwrap();
    let limits: Vec<_> = policy.attempt_limits().collect();
    assert_eq!(limits, [(Cause::Connect, 2), (Cause::Status(503), 1)], "the last word on a cause holds");
    let same = Policy::builder().attempts_on(Cause::Status(503), 1).attempts_on(Cause::Connect, 2);
    assert_eq!(same.build(), Ok(policy), "in whatever order");
}

#[test]
fn a49_a50_a_budget_that_makes_no_sense_is_refused() {
    let default = RatioConfig::new(Ratio::percent(10));
    let budget = |config: RatioConfig| Policy::builder().budget(config);
    let over = Ratio::percent(101);
    assert_eq!(refused(budget(RatioConfig::new(over))), PolicyError::BudgetRatioAboveOne(over));
    let frozen = RatioConfig { window: Duration::ZERO, ..default };
    assert_eq!(refused(budget(frozen)), PolicyError::Zero("budget.window"));
    assert!(budget(RatioConfig::new(Ratio::ONE)).build().is_ok());

    // The reserve that is left open holds at least one whole call's retries.
    assert_eq!([1, 3, 4, 5, 9].map(|attempts| default.reserve_for(attempts)), [3, 3, 3, 4, 8]);
    assert_eq!(RatioConfig { reserve: Some(0), ..default }.reserve_for(9), 0);
    assert_eq!(default.reserve_for(u32::MAX), u32::MAX - 1);
}

#[test]
fn a_breaker_that_makes_no_sense_is_refused() {
    let breaker = |config| Policy::builder().breaker(config);
    let default = RetriesOnlyConfig::DEFAULT;
    let over = Ratio::percent(101);
    let never = RetriesOnlyConfig { failure_rate: over, ..default };
    assert_eq!(refused(breaker(never)), PolicyError::FailureRateAboveOne(over));
    let always = RetriesOnlyConfig { failure_rate: Ratio::ZERO, ..default };
    assert_eq!(refused(breaker(always)), PolicyError::Zero("failure_rate"));
    let frozen = RetriesOnlyConfig { window: Duration::ZERO, ..default };
    assert_eq!(refused(breaker(frozen)), PolicyError::Zero("breaker.window"));
}

#[test]
fn more_than_one_attempt_needs_something_to_retry_on() {
    let nothing = || Policy::builder().retry_on(RetryOn::nothing());
    assert_eq!(refused(nothing()), PolicyError::NothingToRetryOn);
    assert!(nothing().attempts(1).build().is_ok());
    assert!(Policy::builder().retry_on(RetryOn::nothing().reset()).build().is_ok());
}

#[test]
fn every_grpc_failure_can_be_retried_on_and_no_success() {
    use relent_core::{BadGrpcCode, GrpcCode};

    assert_eq!(RetryOn::nothing().grpc(GrpcCode::Ok), Err(BadGrpcCode(GrpcCode::Ok)));
    for code in GrpcCode::all().skip(1) {
        let set = RetryOn::nothing().grpc(code).expect("it is a failure");
        assert_eq!(set.grpc_codes().collect::<Vec<_>>(), [code]);
        assert_eq!(format!("{set:?}"), format!("{{{code}}}"));
        assert!(!set.is_empty());
    }
    let by_default: Vec<_> = RetryOn::default().grpc_codes().collect();
    assert_eq!(by_default, [GrpcCode::ResourceExhausted, GrpcCode::Unavailable]);
}

#[test]
fn only_what_may_work_unchanged_can_be_retried_on() {
    let good = [408, 409, 421, 425, 429, 500, 502, 503, 504, 506, 599];
    for code in 0..=u16::MAX {
        let named = RetryOn::nothing().status(code);
        let may = matches!(code, 408 | 409 | 421 | 425 | 429 | 500 | 502..=504 | 506..=599);
        assert_eq!(named.err(), (!may).then_some(BadStatus(code)), "{code}");
    }
    let all = good.into_iter().try_fold(RetryOn::nothing(), RetryOn::status).unwrap();
    assert_eq!(all.statuses().collect::<Vec<_>>(), good);
    assert_eq!(RetryOn::default().statuses().collect::<Vec<_>>(), [429, 500, 502, 503, 504]);
}

#[test]
fn every_error_says_what_is_wrong_and_how_to_mend_it() {
    for error in [
        refused(Policy::builder().attempts(0)),
        refused(Policy::exponential(secs(2), secs(1))),
        refused(Policy::builder().deadline(Duration::ZERO)),
        refused(Policy::builder().attempt_timeout(secs(60))),
        refused(Policy::builder().retry_on(RetryOn::nothing())),
        refused(Policy::builder().give_up_after(secs(15))),
        refused(Policy::builder().give_up_after(Duration::ZERO)),
        refused(Policy::builder().give_up_after(millis(101))),
    ] {
        let text = error.to_string();
        assert!(text.contains(error.field()), "{text}");
        assert!(text.ends_with(error.mend()) && !text.ends_with('.'), "{text}");
    }
}

#[test]
fn a_time_to_give_up_that_nothing_comes_of_is_refused() {
    let within = |base: Duration, time: Duration| Policy::constant(base).no_deadline().give_up_after(time);
    let (base, give_up_after) = (millis(999), secs(1));
    assert_eq!(
        refused(within(base, give_up_after)),
        PolicyError::FirstWaitBeyondGiveUp { base, give_up_after }
    );
    assert!(within(millis(998), secs(1)).build().is_ok());
    assert!(within(secs(5), secs(1)).attempts(1).build().is_ok());
    let deadline = secs(20);
    let bound = |give_up_after| Policy::builder().deadline(deadline).give_up_after(give_up_after);
    assert_eq!(
        refused(bound(deadline)),
        PolicyError::GiveUpNotBelowDeadline { give_up_after: deadline, deadline }
    );
    assert_eq!(bound(secs(19)).build().unwrap().give_up_after(), Some(secs(19)));
    assert_eq!(bound(secs(19)).no_give_up_after().build(), Policy::builder().deadline(deadline).build());
}

#[test]
fn what_was_said_is_what_is_kept() {
    let said =
        Policy::exponential(millis(50), secs(1)).attempts(4).attempt_timeout(millis(500)).deadline(secs(2));
    let policy = said.max_hint(secs(7)).max_waiting(9).replay_limit(5).build().unwrap();
    assert_eq!(policy.attempts(), 4);
    assert_eq!((policy.attempt_timeout(), policy.deadline()), (Some(millis(500)), Some(secs(2))));
    assert_eq!((policy.max_hint(), policy.max_waiting(), policy.replay_limit()), (secs(7), 9, 5));
    assert_eq!(policy.clone(), policy);
    assert_ne!(policy, Policy::default());
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let policy = Policy::default();
    assert_eq!(policy.attempts(), 3);
    assert_eq!((policy.backoff().base(), policy.backoff().cap()), (millis(100), secs(10)));
    assert_eq!((policy.backoff().multiplier(), policy.backoff().jitter()), (Ratio::of(2, 1), Jitter::Full));
    assert_eq!((policy.attempt_timeout(), policy.deadline()), (Some(secs(5)), Some(secs(15))));
    assert_eq!((policy.min_attempt_time(), policy.throttled_base()), (millis(1), secs(1)));
    assert_eq!((policy.max_hint(), policy.max_waiting()), (secs(30), 10_000));
    let budget = policy.budget().and_then(BudgetConfig::as_ratio).unwrap();
    assert_eq!((budget.ratio, budget.window, budget.reserve_for(3)), (Ratio::percent(10), secs(10), 3));
    assert_eq!(budget.reserve_per_second, Ratio::percent(10));
    assert_eq!((policy.replay_limit(), policy.replay_total()), (64 << 10, 64 << 20));
    assert!(policy.breaker().is_none());
    let breaker = RetriesOnlyConfig::DEFAULT;
    assert_eq!(
        (breaker.failure_rate, breaker.window, breaker.minimum_calls),
        (Ratio::percent(50), secs(10), 20)
    );
    assert_eq!(defaults::KEPT_RESPONSE, 16 << 10);
}

#[test]
fn a49_a50_budgets_of_the_other_kinds_that_make_no_sense_are_refused() {
    let of = |budget: BudgetConfig| Policy::builder().budget(budget).build();
    let throttle = |max_tokens, token_ratio| of(ThrottleConfig { max_tokens, token_ratio }.into());
    let tenth = Ratio::percent(10);
    assert_eq!(throttle(0, tenth), Err(PolicyError::MaxTokensOutOfRange(0)));
    assert_eq!(throttle(1_001, tenth), Err(PolicyError::MaxTokensOutOfRange(1_001)));
    assert_eq!(throttle(10, Ratio::ZERO), Err(PolicyError::Zero("budget.token_ratio")));
    let fine = Ratio::from_parts_per_million(1_001);
    assert_eq!(throttle(10, fine), Err(PolicyError::TokenRatioTooFine(fine)));
    assert!(throttle(1, Ratio::of(1, 1_000)).is_ok() && throttle(1_000, Ratio::of(4_000, 1)).is_ok());

    let cost =
        |capacity, retry| of(CostConfig { capacity, retry, timeout: 5, throttled: 5, first_try: 1 }.into());
    let above = PolicyError::CostAboveCapacity { field: "budget.retry", cost: 6, capacity: 5 };
    assert_eq!(cost(5, 6), Err(above));
    assert_eq!(cost(5, 0), Err(PolicyError::Zero("budget.retry")));
    assert_eq!(cost(0, 1), Err(PolicyError::Zero("budget.capacity")));
    assert!(cost(5, 5).is_ok(), "one retry at a time is enough");
    let frozen = CostConfig { first_try: 0, ..CostConfig::AWS_STANDARD };
    assert_eq!(
        of(frozen.into()),
        Err(PolicyError::Zero("budget.first_try")),
        "a44: it would never fill again"
    );

    let over = Ratio::from_parts_per_million(1_000_001);
    assert_eq!(of(ConcurrencyConfig::new(over).into()), Err(PolicyError::BudgetRatioAboveOne(over)));
    let still = WindowedConfig { ttl: Duration::ZERO, ..WindowedConfig::FINAGLE };
    assert_eq!(of(still.into()), Err(PolicyError::Zero("budget.ttl")));
    assert!(of(WindowedConfig::new(over).into()).is_ok(), "Finagle takes more than one retry per call");
    for (name, preset) in BudgetConfig::PRESETS {
        assert!(of(preset).is_ok(), "{name}");
    }
}
