//! Bodies that can be sent again, without a network: what is kept, what is lost, and who may read.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Empty;
use relent::http::{Replay, ReplayBody, ReplayError, ReplayMemory};
use relent::{Failure, Verdict};
use relent_core::Rng;

const ANY: Failure = Failure::new(Verdict::Transient);

/// A body that does as it is told.
struct Told {
    steps: VecDeque<Step>,
    length: Option<u64>,
}

enum Step {
    Data(&'static [u8]),
    /// Nothing yet, and the reader is woken at once.
    Later,
    Trailers(HeaderMap),
    Fail,
}

impl Told {
    fn new(steps: impl IntoIterator<Item = Step>) -> Told {
        Told { steps: steps.into_iter().collect(), length: None }
    }

    /// Several chunks, with their sum announced.
    fn sized(chunks: &[&'static [u8]]) -> Told {
        let length = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        Told { length: Some(length), ..Told::unsized_(chunks) }
    }

    fn unsized_(chunks: &[&'static [u8]]) -> Told {
        Told::new(chunks.iter().map(|chunk| Step::Data(chunk)))
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = std::fmt::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::fmt::Error>>> {
        Poll::Ready(match self.steps.pop_front() {
            None => None,
            Some(Step::Data(data)) => {
                self.length = self.length.map(|length| length - data.len() as u64);
                Some(Ok(Frame::data(Bytes::from_static(data))))
            }
            Some(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Some(Step::Fail) => Some(Err(std::fmt::Error)),
            Some(Step::Later) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        })
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[derive(Default)]
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn memory() -> Arc<ReplayMemory> {
    Arc::new(ReplayMemory::new(1024))
}

type Polled = Poll<Option<Result<Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>>>>;

fn poll(body: &mut ReplayBody<Told>) -> Polled {
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}

/// The next chunk.
fn chunk(body: &mut ReplayBody<Told>) -> Bytes {
    match poll(body) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().expect("a data frame"),
        other => panic!("no chunk, but {other:?}"),
    }
}

fn refusal(body: &mut ReplayBody<Told>) -> ReplayError {
    match poll(body) {
        Poll::Ready(Some(Err(error))) => *error.downcast().expect("an error of the replay"),
        other => panic!("no refusal, but {other:?}"),
    }
}

/// All that is left, and the trailers.
fn rest(body: &mut ReplayBody<Told>) -> (Vec<u8>, Option<HeaderMap>) {
    let (mut bytes, mut trailers) = (Vec::new(), None);
    loop {
        match poll(body) {
            Poll::Pending => {}
            Poll::Ready(None) => return (bytes, trailers),
            Poll::Ready(Some(frame)) => match frame.unwrap().into_data() {
                Ok(data) => bytes.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().ok(),
            },
        }
    }
}

#[test]
fn p14_one_limit_with_and_without_a_length() {
    for (length, whole) in [(9, true), (10, true), (11, false)] {
        let text: &'static [u8] = &b"0123456789a"[..length];
        let (start, end) = text.split_at(4);
        for body in [Told::sized(&[start, end]), Told::unsized_(&[start, end]), Told::sized(&[text])] {
            let memory = memory();
            let replay = Replay::new(body, 10, &memory);
            assert_eq!(rest(&mut replay.next_attempt()).0, text, "the first try streams");
            assert_eq!(replay.is_whole(&ANY), whole, "{length}");
            assert_eq!(memory.used(), if whole { length as u64 } else { 0 });
            if whole {
                assert_eq!(rest(&mut replay.next_attempt()).0, text);
            }
        }
    }
}

#[test]
fn p16_a_body_that_nobody_read_is_whole_whatever_its_length() {
    let memory = memory();
    let replay = Replay::new(Told::sized(&[b"far too long"]), 3, &memory);
    drop(replay.next_attempt());
    assert!(replay.is_whole(&ANY));
    let mut second = replay.next_attempt();
    assert_eq!(second.size_hint().exact(), Some(12));
    assert_eq!(rest(&mut second).0, b"far too long");
    assert!(!replay.is_whole(&ANY));
}

#[test]
fn what_is_announced_to_be_too_long_is_not_kept_at_all() {
    let memory = memory();
    let replay = Replay::new(Told::sized(&[b"ab", b"too long"]), 5, &memory);
    let mut first = replay.next_attempt();
    assert_eq!((chunk(&mut first), memory.used()), (Bytes::from("ab"), 0));
    assert!(!replay.is_whole(&ANY));
}

#[test]
fn p13_a_body_read_in_part_is_sent_again_from_its_start() {
    let memory = memory();
    let replay = Replay::new(Told::sized(&[b"ab", b"cd", b"ef"]), 10, &memory);
    let mut first = replay.next_attempt();
    assert_eq!((first.size_hint().exact(), chunk(&mut first)), (Some(6), Bytes::from("ab")));
    assert_eq!(first.size_hint().exact(), Some(4));

    let mut second = replay.next_attempt();
    assert_eq!(second.size_hint().exact(), Some(6));
    assert_eq!((chunk(&mut second), chunk(&mut second)), (Bytes::from("ab"), Bytes::from("cd")));
    let mut third = replay.next_attempt();
    assert_eq!(third.size_hint().exact(), Some(6));
    assert_eq!(rest(&mut third).0, b"abcdef");
    assert_eq!((third.size_hint().exact(), third.is_end_stream()), (Some(0), true));
}

#[test]
fn an_abandoned_attempt_reads_an_error_and_is_woken_for_it() {
    let memory = memory();
    let replay = Replay::new(Told::new([Step::Data(b"ab"), Step::Later, Step::Data(b"cd")]), 10, &memory);
    let mut first = replay.next_attempt();
    assert_eq!(chunk(&mut first), "ab");
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    assert!(Pin::new(&mut first).poll_frame(&mut Context::from_waker(&waker)).is_pending());
    let before = wakes.0.load(Ordering::Relaxed);

    let mut second = replay.next_attempt();
    assert_eq!(wakes.0.load(Ordering::Relaxed), before + 1);
    assert_eq!(chunk(&mut second), "ab");
    assert_eq!(refusal(&mut first), ReplayError::Superseded);
    assert!(!first.is_end_stream());
    assert_eq!(rest(&mut second).0, b"cd");
}

#[test]
fn during_a_wait_the_old_attempt_sends_what_can_be_kept_and_no_more() {
    let memory = memory();
    let replay = Replay::new(Told::unsized_(&[b"ab", b"cd", b"too long"]), 5, &memory);
    let mut first = replay.next_attempt();
    assert_eq!(chunk(&mut first), "ab");
    assert!(replay.is_whole(&ANY));
    replay.another_follows();
    assert_eq!(chunk(&mut first), "cd");
    assert_eq!(refusal(&mut first), ReplayError::Superseded);

    let mut second = replay.next_attempt();
    assert_eq!(rest(&mut second).0, b"abcdtoo long");
    assert!(!replay.is_whole(&ANY));
}

#[test]
fn while_it_is_decided_what_follows_the_old_attempt_waits_at_the_limit() {
    let memory = memory();
    let replay = Replay::new(Told::unsized_(&[b"ab", b"too long"]), 5, &memory);
    let mut first = replay.next_attempt();
    assert_eq!(chunk(&mut first), "ab");
    assert!(replay.is_whole(&ANY));
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    assert!(Pin::new(&mut first).poll_frame(&mut Context::from_waker(&waker)).is_pending());
    assert!(!first.is_end_stream());
    assert_eq!(first.size_hint().lower(), 8);

    // No other attempt: P19, the answer came early, and the request goes on.
    drop(replay);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(rest(&mut first).0, b"too long");
}

#[test]
fn p14_a_body_that_was_lost_is_never_sent_in_part() {
    let memory = memory();
    let replay = Replay::new(Told::unsized_(&[b"ab", b"too long", b"c"]), 5, &memory);
    let mut first = replay.next_attempt();
    assert_eq!((chunk(&mut first), chunk(&mut first)), (Bytes::from("ab"), Bytes::from("too long")));
    assert!(!replay.is_whole(&ANY));
    assert_eq!(chunk(&mut first), "c", "the first try streams on");
    // Nobody who asked would go on. Whoever doesn't ask is refused.
    let mut second = replay.next_attempt();
    assert_eq!(refusal(&mut second), ReplayError::NotKept);
    assert_eq!((second.is_end_stream(), second.size_hint().exact()), (false, None));
}

#[test]
fn a_body_that_fails_is_lost() {
    let memory = memory();
    let replay = Replay::new(Told::new([Step::Data(b"ab"), Step::Fail]), 10, &memory);
    let mut first = replay.next_attempt();
    assert_eq!(chunk(&mut first), "ab");
    replay.another_follows();
    assert!(matches!(poll(&mut first), Poll::Ready(Some(Err(error))) if error.is::<std::fmt::Error>()));
    assert!(!replay.is_whole(&ANY));
    assert_eq!(refusal(&mut replay.next_attempt()), ReplayError::NotKept);
    assert_eq!(memory.used(), 0);
}

#[test]
fn p22_trailers_are_kept() {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    let memory = memory();
    let replay = Replay::new(Told::new([Step::Data(b"ab"), Step::Trailers(trailers.clone())]), 20, &memory);
    for _ in 0..3 {
        let mut attempt = replay.next_attempt();
        assert!(!attempt.is_end_stream());
        assert_eq!(rest(&mut attempt), (b"ab".to_vec(), Some(trailers.clone())));
        assert!(attempt.is_end_stream());
    }
    assert_eq!(memory.used(), 14);
}

#[test]
fn trailers_over_the_limit_lose_the_body() {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    let memory = memory();
    let replay = Replay::new(Told::new([Step::Data(b"ab"), Step::Trailers(trailers.clone())]), 10, &memory);
    assert_eq!(rest(&mut replay.next_attempt()), (b"ab".to_vec(), Some(trailers)));
    assert!(!replay.is_whole(&ANY));
}

#[test]
fn the_memory_of_all_calls_is_bounded_and_given_back() {
    let memory = Arc::new(ReplayMemory::new(6));
    let one = Replay::new(Told::sized(&[b"abcd"]), 5, &memory);
    let two = Replay::new(Told::sized(&[b"efgh"]), 5, &memory);
    let (mut first, mut second) = (one.next_attempt(), two.next_attempt());
    assert_eq!((rest(&mut first).0, rest(&mut second).0), (b"abcd".to_vec(), b"efgh".to_vec()));
    assert_eq!((one.is_whole(&ANY), two.is_whole(&ANY), memory.used()), (true, false, 4));
    drop((one, first));
    assert_eq!(memory.used(), 0);
}

#[test]
fn once_no_attempt_can_follow_nothing_more_is_kept() {
    let memory = memory();
    let replay = Replay::new(Told::unsized_(&[b"ab", b"cd", b"ef"]), 10, &memory);
    let mut first = replay.next_attempt();
    assert_eq!((chunk(&mut first), memory.used()), (Bytes::from("ab"), 2));
    let mut second = replay.next_attempt();
    drop((replay, first));
    assert_eq!(rest(&mut second).0, b"abcdef");
    assert_eq!(memory.used(), 0);
}

#[test]
fn an_empty_body_is_always_whole() {
    let memory = memory();
    let replay: Replay<Empty<Bytes>> = Replay::new(Empty::new(), 0, &memory);
    for _ in 0..2 {
        let attempt = replay.next_attempt();
        assert_eq!((attempt.is_end_stream(), attempt.size_hint().exact()), (true, Some(0)));
        assert!(replay.is_whole(&ANY));
    }
    let mut attempt = replay.next_attempt();
    let polled = Pin::new(&mut attempt).poll_frame(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(None)));
}

/// Whatever is read by whom and when: each attempt that reads to the end has read every byte once, in order.
#[test]
fn a_lost_race_neither_repeats_nor_skips_a_byte() {
    const TEXT: &[u8] = b"the quick brown fox jumps over the lazy dog";
    for seed in 0..2000 {
        let mut dice = Rng::seeded(seed);
        let mut roll = move |sides: u64| dice.next() % sides;
        let mut chunks = Vec::new();
        let mut left = TEXT;
        while !left.is_empty() {
            let (chunk, later) = left.split_at((roll(9) as usize).min(left.len()));
            chunks.push(if roll(4) == 0 { Step::Later } else { Step::Data(chunk) });
            left = if matches!(chunks.last(), Some(Step::Later)) { left } else { later };
        }
        let limit = roll(60);
        let memory = memory();
        let replay = Replay::new(Told::new(chunks), limit, &memory);
        let mut old: Vec<ReplayBody<Told>> = Vec::new();
        let mut current = replay.next_attempt();
        let mut read = Vec::new();
        loop {
            // Somebody reads on who shouldn't.
            for body in &mut old {
                assert_eq!(refusal(body), ReplayError::Superseded);
            }
            match poll(&mut current) {
                Poll::Pending => {}
                Poll::Ready(None) => break,
                Poll::Ready(Some(frame)) => read.extend_from_slice(&frame.unwrap().into_data().unwrap()),
            }
            if roll(5) > 0 || !replay.is_whole(&ANY) {
                continue;
            }
            // The old attempt goes on during the wait, for a while.
            replay.another_follows();
            for _ in 0..roll(3) {
                let _ = poll(&mut current);
            }
            old.push(std::mem::replace(&mut current, replay.next_attempt()));
            read.clear();
        }
        assert_eq!(read, TEXT, "seed {seed}");
        assert!(memory.used() <= limit);
    }
}
