//! The throttle of gRFC A6, by grpc-go's own vectors.

use relent::grpc::GrpcRetryLayer;
use relent::{Ratio, Retry, StopReason};
use relent_core::{BudgetConfig, ThrottleConfig};

use super::server::{Server, always, call, ending, message, request, status, status_with};

fn layer(throttle: ThrottleConfig) -> GrpcRetryLayer {
    let policy = always().budget(BudgetConfig::Throttle(throttle)).build().unwrap();
    GrpcRetryLayer::new(Retry::new(policy))
}

/// grpc-go's `TestRetryThrottling`: 10 tokens, half a token for a success, four attempts.
#[tokio::test(start_paused = true)]
async fn grpc_go_retry_throttling() {
    let layer = layer(ThrottleConfig { max_tokens: 10, token_ratio: Ratio::percent(50) });
    let good = [0, 3, 6, 10, 11, 12, 13, 14, 16, 18];
    let answer = |call| if good.contains(&call) { message("answer") } else { status("14") };
    let server = Server::new((0..20).map(answer));
    let refused = Some((StopReason::BudgetExhausted, 1));
    for (last, stopped) in [
        (0, None),
        (3, None),
        (6, None),
        (8, Some((StopReason::BudgetExhausted, 2))),
        (9, refused),
        (10, None),
        (11, None),
        (12, None),
        (13, None),
        (14, None),
        (16, None),
        (17, refused),
    ] {
        let ended = call(&layer, &server, request()).await;
        assert_eq!((server.count(), ending(&ended).1), (last + 1, stopped));
    }
}

/// A6: a failure counts where it is retryable or the server said "don't"; other failures leave the tokens alone.
#[tokio::test(start_paused = true)]
async fn only_failures_that_ask_for_relief_count() {
    let layer = layer(ThrottleConfig { max_tokens: 4, token_ratio: Ratio::percent(10) });
    let fine = Server::new((0..20).map(|_| status("5")));
    for _ in 0..20 {
        call(&layer, &fine, request()).await.unwrap();
    }
    let server = Server::new([status("14"), message("answer")]);
    assert_eq!(ending(&call(&layer, &server, request()).await), (None, None));
    // Now 3.1 of 4: one "don't" on a code that isn't retryable at all, and the next retry is refused.
    let stop = Server::new([status_with("5", "grpc-retry-pushback-ms", "-1")]);
    assert_eq!(ending(&call(&layer, &stop, request()).await).1, Some((StopReason::NotRetryable, 1)));
    let server = Server::new([status("14")]);
    let ended = call(&layer, &server, request()).await;
    assert_eq!(ending(&ended).1, Some((StopReason::BudgetExhausted, 1)));
}
