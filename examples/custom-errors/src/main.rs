//! Retry by your own errors: say which are worth another attempt, with a closure, a type or a mark, and read the story that
//! the final error tells.

use std::error::Error;
use std::io;
use std::time::Duration;

use relent::{Boxed, Classify, Failure, Hint, Policy, PolicyError, Retry, StopReason, Transient, Verdict};

/// The errors of a shop's client.
#[derive(Debug, thiserror::Error)]
enum ShopError {
    #[error("the shop is closed for {0:?}")]
    Closed(Duration),
    #[error("the queue is full")]
    QueueFull,
    #[error("no such article")]
    NoSuchArticle,
    #[error("the connection broke off")]
    Connection(#[source] io::Error),
}

fn main() -> Result<(), Box<dyn Error>> {
    a_closure()?;
    a_type()?;
    a_mark()?;
    what_is_known_already()?;
    the_whole_story()?;
    Ok(())
}

fn quick() -> Result<Retry, PolicyError> {
    Ok(Retry::new(Policy::constant(Duration::ZERO).build()?))
}

/// A closure is enough where a word is.
fn a_closure() -> Result<(), PolicyError> {
    let retry = quick()?.classify(|error: &ShopError| match error {
        ShopError::Closed(_) | ShopError::QueueFull => Verdict::Transient,
        _ => Verdict::Permanent,
    });
    let mut answers = [Err(ShopError::QueueFull), Ok(7)].into_iter();
    assert_eq!(retry.run_blocking(|_| answers.next().unwrap_or(Ok(0))).ok(), Some(7));

    let unknown =
        retry.run_blocking(|_| Err::<(), _>(ShopError::NoSuchArticle)).expect_err("there is no such article");
    assert_eq!((unknown.reason(), unknown.attempts()), (StopReason::NotRetryable, 1));
    Ok(())
}

/// A type where there is more to say: what the server asked to wait, what certainly was not executed, what may have been. It
/// also has a name that a field can be declared with: `Retry<Shop>`.
#[derive(Clone, Copy, Debug)]
struct Shop;

impl Classify<ShopError> for Shop {
    fn classify(&self, error: &ShopError) -> Failure {
        match error {
            ShopError::Closed(wait) => Failure::new(Verdict::Throttled { hint: Some(Hint::at_least(*wait)) }),
            ShopError::QueueFull => Failure::new(Verdict::Unprocessed),
            ShopError::NoSuchArticle => Failure::new(Verdict::Permanent),
            ShopError::Connection(_) => Failure::new(Verdict::Transient).ambiguous(),
        }
    }
}

fn a_type() -> Result<(), PolicyError> {
    let retry = quick()?.classify(Shop);

    // An hour is longer than anybody waits (`max_hint`, 30 s by default): better to say so at once.
    let an_hour = Duration::from_secs(3600);
    let closed =
        retry.run_blocking(|_| Err::<(), _>(ShopError::Closed(an_hour))).expect_err("the shop is closed");
    assert_eq!((closed.reason(), closed.hint()), (StopReason::HintTooLong, Some(an_hour)));

    // A purchase is repeated where it was refused at the door, and not where nobody knows.
    let mut answers = [Err(ShopError::QueueFull), Err(ShopError::Connection(broken_pipe()))].into_iter();
    let unknown = retry
        .run_blocking_only_if_unprocessed(|_| answers.next().unwrap_or(Ok(())))
        .expect_err("the connection broke off");
    assert_eq!((unknown.reason(), unknown.attempts()), (StopReason::UnsafeToRepeat, 2));
    assert!(unknown.ambiguous());
    Ok(())
}

/// A mark, where the error is made, does without a classifier: relent finds it however deeply it is wrapped.
fn a_mark() -> Result<(), PolicyError> {
    let mut attempts = 0;
    let answer = quick()?.run_blocking(|_| {
        attempts += 1;
        if attempts < 3 { Err(io::Error::other(Transient::new(ShopError::QueueFull))) } else { Ok(attempts) }
    });
    assert_eq!(answer.ok(), Some(3));
    Ok(())
}

/// What is below counts: the errors of the standard library (and of HTTP clients, by feature) are known, also inside of
/// yours. An error that nobody knows is not retried.
fn what_is_known_already() -> Result<(), PolicyError> {
    let mut answers = [Err(ShopError::Connection(broken_pipe())), Ok("bread")].into_iter();
    assert_eq!(quick()?.run_blocking(|_| answers.next().unwrap_or(Ok(""))).ok(), Some("bread"));

    // `Box<dyn Error>` and `anyhow::Error` are no `Error` themselves: `Boxed` looks inside.
    type BoxError = Box<dyn Error + Send + Sync>;
    let mut answers = [Err(BoxError::from(broken_pipe())), Err("who knows?".into())].into_iter();
    let gave_up = quick()?
        .classify(Boxed)
        .run_blocking(|_| answers.next().unwrap_or(Ok(())))
        .expect_err("nobody knows the second error");
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::NotRetryable, 2));
    Ok(())
}

/// The last error comes back as it was; all of them if asked for.
fn the_whole_story() -> Result<(), PolicyError> {
    let retry = quick()?.keep_errors().classify(Shop);
    let mut answers =
        [ShopError::QueueFull, ShopError::Connection(broken_pipe()), ShopError::NoSuchArticle].into_iter();
    let gave_up = retry
        .run_blocking(|_| Err::<(), _>(answers.next().unwrap_or(ShopError::QueueFull)))
        .expect_err("every attempt fails");

    let errors: Vec<String> = gave_up.errors().map(ToString::to_string).collect();
    assert_eq!(errors, ["the queue is full", "the connection broke off", "no such article"]);
    assert_eq!(gave_up.source().map(ToString::to_string).as_deref(), Some("no such article"));
    assert!(gave_up.to_string().starts_with("gave up after 3 attempts in "));
    assert!(gave_up.to_string().ends_with(": the failure is not retryable; it may have taken effect"));
    assert!(matches!(gave_up.into_last(), Some(ShopError::NoSuchArticle)));
    Ok(())
}

fn broken_pipe() -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}
