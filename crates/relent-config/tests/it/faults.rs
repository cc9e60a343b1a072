//! Every kind of fault, as it is shown: `faults/*.txt`.

use crate::cases::check;

/// What is wrong with the text, or that nothing is.
fn faults(text: &str) -> String {
    match relent_config::parse("relent.toml", text) {
        Ok(_) => "valid".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn budgets() {
    check("budgets", faults);
}

#[test]
fn curves() {
    check("growth", faults);
}

#[test]
fn contradictions() {
    check("contradictions", faults);
}

#[test]
fn lengths_sizes_and_shares() {
    check("quantities", faults);
}

#[test]
fn breakers_and_hedges() {
    check("breakers", faults);
}

#[test]
fn names_and_words() {
    check("names", faults);
}

#[test]
fn values_of_policies() {
    check("policies", faults);
}

#[test]
fn what_is_retried() {
    check("retry_on", faults);
}

#[test]
fn proxy_upstreams_and_routes() {
    check("proxy", faults);
}

#[test]
fn what_is_no_toml() {
    check("syntax", faults);
}

/// A jitter over the whole wait could make it negative (failsafe #115): refused, as is a share below nothing.
#[test]
fn a14_jitter_over_the_wait_is_refused() {
    for share in ["1.000001", "2", "-0.1"] {
        for kind in ["proportional", "additive"] {
            let text = format!("version = 1\n[policy.a]\nbackoff.jitter = {{ {kind} = {share} }}\n");
            assert!(
                faults(&text).contains(share.trim_start_matches('-')),
                "{kind} {share}: {}",
                faults(&text)
            );
        }
    }
}

/// Every backoff has a cap, also where the file names none.
#[test]
fn a16_a_cap_is_always_there() {
    let text = "version = 1\n[policy.a]\nbackoff = { base = \"11s\" }\ndeadline = \"none\"\n";
    assert!(faults(text).contains("cap 10s is below base 11s"), "{}", faults(text));
}
