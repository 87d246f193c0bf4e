// SPDX-License-Identifier: MIT
//! HTTP/1.1 over connections that are kept. Redirects are not followed.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use openssl::ssl::{HandshakeError, SslConnector, SslStream};
use openssl::x509::X509VerifyResult;

use crate::answer::Failure;
use crate::clock::{now_ms, LONGEST_SLEEP_MS};

const LONGEST_HEAD: usize = 64 * 1024;
const LONGEST_BODY: usize = 64 * 1024 * 1024;

/// Where a replica is.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    is_tls: bool,
    host: String,
    port: u16,
    /// Without a slash at its end.
    path: String,
    /// Of the URL: `Basic ...`.
    pub authorization: Option<String>,
    /// As it is shown: without a user and a password.
    pub name: String,
}

impl Target {
    pub fn parse(url: &str) -> Option<Target> {
        let (scheme, rest) = url.split_once("://")?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let is_plain = |c: u8| c.is_ascii_graphic() && c != b'?' && c != b'#';
        if !rest.bytes().all(is_plain) {
            return None;
        }
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, place),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (place, if is_tls { 443 } else { 80 }),
        };
        let is_address = host.starts_with('[') && host.ends_with(']');
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if bare.is_empty() || (!is_address && bare.contains(':')) {
            return None;
        }
        Some(Target {
            is_tls,
            host: bare.to_owned(),
            port,
            path: path.trim_end_matches('/').to_owned(),
            authorization: user.map(basic),
            name: format!("{scheme}://{place}{path}"),
        })
    }

    fn host_header(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match (self.is_tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

fn basic(user: &str) -> String {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut both = percent_decoded(name);
    both.push(b':');
    both.extend(percent_decoded(password));
    let encoded = openssl::base64::encode_block(&both).replace('\n', "");
    format!("Basic {encoded}")
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.map(|two| u8::from_str_radix(two, 16)) {
            Some(Ok(byte)) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

/// A socket whose reads and writes end at a deadline.
#[derive(Debug)]
struct Timed {
    socket: TcpStream,
    deadline_ms: f64,
}

impl Timed {
    fn within<T>(&mut self, mut io: impl FnMut(&mut TcpStream) -> io::Result<T>) -> io::Result<T> {
        loop {
            let left_ms = self.deadline_ms - now_ms();
            if left_ms <= 0.0 {
                return Err(io::Error::new(ErrorKind::TimedOut, "no response in time"));
            }
            let wait_ms = left_ms.clamp(1.0, LONGEST_SLEEP_MS);
            let wait = Some(Duration::from_secs_f64(wait_ms / 1000.0));
            self.socket.set_read_timeout(wait)?;
            self.socket.set_write_timeout(wait)?;
            match io(&mut self.socket) {
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                result => return result,
            }
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.within(|socket| socket.read(buffer))
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.within(|socket| socket.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Stream {
    Plain(Timed),
    Tls(Box<SslStream<Timed>>),
}

/// A response.
pub(crate) struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// A connection.
pub(crate) struct Connection {
    stream: Stream,
    /// What was read, and not yet used.
    buffer: Vec<u8>,
    /// A byte of the response has come.
    pub has_begun: bool,
    /// The connection may serve another request.
    pub is_kept: bool,
    pub idle_since_ms: f64,
}

impl Connection {
    /// No server has got a request if it fails.
    pub fn open(
        target: &Target,
        tls: &SslConnector,
        deadline_ms: f64,
    ) -> Result<Connection, (Failure, String)> {
        let unsent = |error: io::Error| (Failure::Unsent, error.to_string());
        let socket = dial(target, deadline_ms).map_err(unsent)?;
        socket.set_nodelay(true).map_err(unsent)?;
        let timed = Timed {
            socket,
            deadline_ms,
        };
        let stream = if target.is_tls {
            Stream::Tls(Box::new(shake_hands(target, tls, timed)?))
        } else {
            Stream::Plain(timed)
        };
        Ok(Connection {
            stream,
            buffer: Vec::new(),
            has_begun: false,
            is_kept: false,
            idle_since_ms: 0.0,
        })
    }

    fn timed(&mut self) -> &mut Timed {
        match &mut self.stream {
            Stream::Plain(timed) => timed,
            Stream::Tls(stream) => stream.get_mut(),
        }
    }

    pub fn socket(&mut self) -> io::Result<TcpStream> {
        self.timed().socket.try_clone()
    }

    /// An idle connection that can be read has ended, or tells what nobody asked.
    pub fn has_ended(&mut self) -> bool {
        let socket = &self.timed().socket;
        let peek = || {
            socket.set_nonblocking(true)?;
            let result = socket.peek(&mut [0]);
            socket.set_nonblocking(false)?;
            result
        };
        !matches!(peek(), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    pub fn exchange(
        &mut self,
        request: &[u8],
        write_until_ms: f64,
        read_until_ms: f64,
    ) -> io::Result<Response> {
        self.has_begun = false;
        self.is_kept = false;
        self.buffer.clear();
        self.timed().deadline_ms = write_until_ms;
        match &mut self.stream {
            Stream::Plain(timed) => timed.write_all(request)?,
            Stream::Tls(stream) => stream.write_all(request)?,
        }
        self.timed().deadline_ms = read_until_ms;
        loop {
            let response = self.read_response()?;
            // 1xx: the response is still to come
            if !(100..200).contains(&response.status) {
                return Ok(response);
            }
        }
    }

    // ---- the response

    /// Reads more. False: the connection was closed.
    fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        let count = match &mut self.stream {
            Stream::Plain(timed) => timed.read(&mut chunk)?,
            Stream::Tls(stream) => stream.read(&mut chunk)?,
        };
        self.has_begun |= count > 0;
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(count > 0)
    }

    fn fill_on(&mut self) -> io::Result<()> {
        if self.fill()? {
            return Ok(());
        }
        let closed = "the connection was closed";
        Err(io::Error::new(ErrorKind::UnexpectedEof, closed))
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&c| c == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).into_owned();
                return Ok(line.trim_end_matches(&['\r', '\n'][..]).to_owned());
            }
            if self.buffer.len() > LONGEST_HEAD {
                return Err(bad("a line is too long"));
            }
            self.fill_on()?;
        }
    }

    fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        if count > LONGEST_BODY {
            return Err(bad("the response is too long"));
        }
        while self.buffer.len() < count {
            self.fill_on()?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    fn read_response(&mut self) -> io::Result<Response> {
        let first = self.line()?;
        let mut words = first.split(' ');
        let version = words.next().unwrap_or("");
        let status = words.next().and_then(|word| word.parse().ok());
        let status = status.filter(|status| (100..1000).contains(status));
        let status: u16 = match status {
            Some(status) if version.starts_with("HTTP/1.") => status,
            _ => return Err(bad("no HTTP response")),
        };
        let headers = self.headers()?;
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        let has = |name, word: &str| {
            let value = response.header(name).unwrap_or("").to_ascii_lowercase();
            value.split(',').any(|one| one.trim() == word)
        };
        let mut is_kept = version == "HTTP/1.1" && !has("Connection", "close");
        let is_chunked = has("Transfer-Encoding", "chunked");
        let length = response.header("Content-Length").map(str::parse);
        response.body = match length {
            _ if status < 200 || status == 204 || status == 304 => Vec::new(),
            _ if is_chunked => self.chunks()?,
            Some(length) => self.bytes(length.map_err(|_| bad("no length"))?)?,
            None => {
                is_kept = false;
                self.rest()?
            }
        };
        self.is_kept = is_kept && self.buffer.is_empty();
        Ok(response)
    }

    fn headers(&mut self) -> io::Result<Vec<(String, String)>> {
        let mut headers = Vec::new();
        let mut length = 0;
        loop {
            let line = self.line()?;
            length += line.len();
            if line.is_empty() {
                return Ok(headers);
            }
            if length > LONGEST_HEAD {
                return Err(bad("the headers are too long"));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad("no header"))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let digits = line.split(';').next().unwrap_or("").trim();
            let count = usize::from_str_radix(digits, 16).map_err(|_| bad("no chunk"))?;
            if count == 0 {
                self.headers()?;
                return Ok(body);
            }
            body.extend(self.bytes(count)?);
            if body.len() > LONGEST_BODY || !self.line()?.is_empty() {
                return Err(bad("no chunk"));
            }
        }
    }

    fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.fill()? {
            if self.buffer.len() > LONGEST_BODY {
                return Err(bad("the response is too long"));
            }
        }
        Ok(std::mem::take(&mut self.buffer))
    }
}

fn bad(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

fn dial(target: &Target, deadline_ms: f64) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in (target.host.as_str(), target.port).to_socket_addrs()? {
        let left_ms = deadline_ms - now_ms();
        if left_ms < 1.0 {
            return Err(io::Error::new(ErrorKind::TimedOut, "no connection in time"));
        }
        let limit = Duration::from_secs_f64(left_ms / 1000.0);
        match TcpStream::connect_timeout(&address, limit) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn shake_hands(
    target: &Target,
    tls: &SslConnector,
    timed: Timed,
) -> Result<SslStream<Timed>, (Failure, String)> {
    let error = match tls.connect(&target.host, timed) {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    let verified = match &error {
        HandshakeError::Failure(stream) | HandshakeError::WouldBlock(stream) => {
            stream.ssl().verify_result()
        }
        HandshakeError::SetupFailure(_) => X509VerifyResult::OK,
    };
    if verified == X509VerifyResult::OK {
        return Err((Failure::Unsent, format!("no TLS connection: {error}")));
    }
    let why = verified.error_string();
    let words = format!("the server's certificate is not trusted: {why}");
    Err((Failure::Untrusted, words))
}

/// The request as it is sent.
pub(crate) fn serialized(
    target: &Target,
    request: &crate::answer::Request,
    authorization: Option<&str>,
) -> Vec<u8> {
    use std::fmt::Write as _;

    let mut head = format!(
        "{} {}{} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\n",
        request.method,
        target.path,
        request.path,
        target.host_header()
    );
    let mut header = |name: &str, value: &str| {
        write!(head, "{name}: {value}\r\n").expect("a string grows");
    };
    header(
        "User-Agent",
        concat!("redlockd-client-rust/", env!("CARGO_PKG_VERSION")),
    );
    if let Some(value) = authorization {
        header("Authorization", value);
    }
    if let Some((name, value)) = &request.header {
        header(name, value);
    }
    let body = request.body.as_ref().map(ToString::to_string);
    if let Some(body) = &body {
        header("Content-Type", "application/json");
        header("Content-Length", &body.len().to_string());
    }
    head.push_str("\r\n");
    head.push_str(body.as_deref().unwrap_or(""));
    head.into_bytes()
}
