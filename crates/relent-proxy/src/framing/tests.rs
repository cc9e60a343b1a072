use super::*;

/// The fault in these bytes, read at once.
fn fault(bytes: &[u8]) -> Option<FaultKind> {
    Framing::new().read(bytes).err().map(|fault| fault.kind)
}

/// The same, read in parts of so many bytes.
fn fault_in_parts(bytes: &[u8], length: usize) -> Option<FaultKind> {
    let mut framing = Framing::new();
    bytes.chunks(length).find_map(|part| framing.read(part).err()).map(|fault| fault.kind)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n";

/// Heads that begin a GET, what is appended, and what is wrong with it.
const TABLE: &[(&str, Option<FaultKind>)] = &[
    ("\r\n", None),
    ("A: b\r\n\r\n", None),
    ("Content-Length: 0\r\n\r\n", None),
    ("Content-Length: 5\r\n\r\nhello", None),
    ("Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: b\r\n\r\n", None),
    ("Content-Length:5 \t\r\n\r\nhello", None),
    ("content-length: 00005\r\n\r\nhello", None),
    ("Content-Lengthy: x\r\n\r\n", None),
    ("Content-Length: +5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: -5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 0x5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 5,5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 5 5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length:\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: \u{b}5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 99999999999999999999\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 5\r\nContent-Length: 5\r\n\r\n", Some(FaultKind::TwoLengths)),
    ("Content-Length: 5\r\ncontent-length: 6\r\n\r\n", Some(FaultKind::TwoLengths)),
    ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", Some(FaultKind::LengthAndCoding)),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", Some(FaultKind::LengthAndCoding)),
    ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", Some(FaultKind::LengthAndCoding)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", None),
    ("TRANSFER-ENCODING:\tChunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", None),
    (
        "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n",
        None,
    ),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: xchunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: gzip, chunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: chunked, identity\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: identity\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: \u{b}chunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: \"chunked\"\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding:\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: chunked\r\n\r\nx\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n-1\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n", Some(FaultKind::BareLf)),
    ("A: b\n\r\n", Some(FaultKind::BareLf)),
    ("A: b\r\n\n", Some(FaultKind::BareLf)),
    ("A: b\nContent-Length: 5\r\n\r\n", Some(FaultKind::BareLf)),
    ("Host: b\r\n\r\n", Some(FaultKind::TwoHosts)),
    ("host:\r\n\r\n", Some(FaultKind::TwoHosts)),
    ("\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n", None),
    ("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n", Some(FaultKind::EmptyLines)),
    ("\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(FaultKind::RequestLine)),
];

/// Whole streams.
const STREAMS: &[(&str, Option<FaultKind>)] = &[
    ("GET / HTTP/1.0\r\n\r\n", None),
    ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("GET / HTTP/1.1\r\n\r\n", Some(FaultKind::NoHost)),
    ("GET / HTTP/1.1\r\nHostess: a\r\n\r\n", Some(FaultKind::NoHost)),
    ("GET /\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/0.9\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/2.0\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / http/1.1\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET  / HTTP/1.1\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/1.1 \r\n\r\n", Some(FaultKind::RequestLine)),
    (" GET / HTTP/1.1\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / x HTTP/1.1\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/1.1\nHost: a\r\n\r\n", Some(FaultKind::BareLf)),
    ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Some(FaultKind::BareLf)),
    ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", None),
    ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Some(FaultKind::EmptyLines)),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", None),
    ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", None),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(FaultKind::RequestLine)),
];

fn all() -> Vec<(Vec<u8>, Option<FaultKind>)> {
    let appended = TABLE.iter().map(|(rest, fault)| (format!("{GET}{rest}").into_bytes(), *fault));
    let whole = STREAMS.iter().map(|(text, fault)| (text.as_bytes().to_vec(), *fault));
    appended.chain(whole).collect()
}

#[test]
fn every_row_of_the_table() {
    for (bytes, expected) in all() {
        assert_eq!(fault(&bytes), expected, "{:?}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn however_the_bytes_come() {
    for (bytes, expected) in all() {
        for length in 1..bytes.len() {
            let found = fault_in_parts(&bytes, length);
            assert_eq!(found, expected, "by {length}: {:?}", String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn a_fault_says_what_comes_before_its_head() {
    let good = format!("{GET}Content-Length: 5\r\n\r\nhello");
    let both = format!("{good}GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n");
    let mut framing = Framing::new();
    let fault = framing.read(both.as_bytes()).unwrap_err();
    assert_eq!((fault.keep, fault.in_head), (good.len(), true));

    let mut framing = Framing::new();
    framing.read(good.as_bytes()).unwrap();
    framing.read(b"GET / HT").unwrap();
    assert!(framing.is_inside_head());
    let fault = framing.read(b"TP/1.1\n").unwrap_err();
    assert_eq!((fault.keep, fault.in_head), (0, true));

    let chunked = format!("{GET}Transfer-Encoding: chunked\r\n\r\n");
    let mut framing = Framing::new();
    framing.read(chunked.as_bytes()).unwrap();
    assert!(!framing.is_inside_head());
    assert!(!framing.read(b"x\r\n").unwrap_err().in_head);
}

#[test]
fn long_heads_and_lines_are_refused() {
    let long = format!("{GET}A: {}\r\n\r\n", "x".repeat(LONGEST_HEAD));
    assert_eq!(fault(long.as_bytes()), Some(FaultKind::HeadTooLarge));
    assert_eq!(fault_in_parts(long.as_bytes(), 1000), Some(FaultKind::HeadTooLarge));
    let many = format!("{GET}{}\r\n", "A: b\r\n".repeat(LONGEST_HEAD / 6));
    assert_eq!(fault(many.as_bytes()), Some(FaultKind::HeadTooLarge));
    let chunk = format!("{GET}Transfer-Encoding: chunked\r\n\r\n5;{}", "x".repeat(LONGEST_CHUNK_LINE));
    assert_eq!(fault(chunk.as_bytes()), Some(FaultKind::BadChunk));
}

#[test]
fn what_is_not_http1_is_let_be() {
    let mut framing = Framing::new();
    framing.switch_off();
    assert!(framing.is_off() && !framing.is_inside_head());
    framing.read(b"\n\0\n").unwrap();
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, length in 1_usize..40) {
        let whole = [GET.as_bytes(), &bytes].concat();
        proptest::prop_assert_eq!(fault(&whole), fault_in_parts(&whole, length));
    }
}
