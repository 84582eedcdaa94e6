//! One hello, one answer.

use super::answer::{Assembler, TlsAnswer, Until, header};
use super::hello::{Hello, KeyShare};
use super::version::Version;
use crate::error::ProbeError;
use crate::starttls::Starttls;
use crate::visit::{Connection, Visit};

/// Where TLS is spoken.
#[derive(Debug)]
pub(crate) struct Door<'v> {
    pub visit: &'v Visit,
    pub starttls: Option<Starttls>,
    /// For SNI.
    pub name: Option<String>,
}

/// What is offered in one hello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    pub version: Version,
    pub suites: &'a [u16],
    pub groups: &'a [u16],
    pub share: Option<KeyShare>,
    pub extras: bool,
}

impl<'v> Door<'v> {
    /// A connection on which the next byte is TLS.
    pub fn open(&self) -> Result<Connection<'v>, ProbeError> {
        let mut connection = self.visit.open()?;
        if let Some(starttls) = self.starttls {
            let host = self.name.as_deref().unwrap_or("localhost");
            starttls.begin(&mut connection, host)?;
        }
        Ok(connection)
    }

    /// The name that a library of TLS is given: that for SNI, or the address.
    pub fn any_name(&self) -> String {
        let address = || self.visit.place().address.ip().to_string();
        self.name.clone().unwrap_or_else(address)
    }

    /// Sends a hello and reads the answer. The connection is left open for what follows.
    pub fn say(
        &self,
        offer: Offer<'_>,
        until: Until,
    ) -> Result<(Connection<'v>, TlsAnswer), ProbeError> {
        let mut connection = self.open()?;
        let hello = Hello {
            version: offer.version,
            suites: offer.suites,
            groups: offer.groups,
            server_name: self.name.as_deref(),
            share: offer.share.unwrap_or(KeyShare::Empty),
            heartbeat: offer.extras,
            compression: offer.extras,
            random: self.visit.random(),
            renegotiates: &[],
        };
        connection.expect("the answer to a hello of TLS");
        connection.send(&hello.record())?;
        let answer = read(&mut connection, until)?;
        Ok((connection, answer))
    }

    /// As [`Self::say`], once more when the connection failed: one lost packet or a server that was
    /// just restarted must not look like a refusal.
    pub fn ask(&self, offer: Offer<'_>, until: Until) -> Result<TlsAnswer, ProbeError> {
        match self.say(offer, until) {
            Ok((_, answer)) => Ok(answer),
            Err(ProbeError::Deadline { after }) => Err(ProbeError::Deadline { after }),
            Err(_) => self.say(offer, until).map(|(_, answer)| answer),
        }
    }
}

/// Reads records until the answer is whole.
pub(crate) fn read(connection: &mut Connection<'_>, until: Until) -> Result<TlsAnswer, ProbeError> {
    let mut assembler = Assembler::new(until);
    loop {
        let (kind, body) = record(connection)?;
        if let Some(answer) = assembler.record(kind, &body)? {
            return Ok(answer);
        }
    }
}

/// Reads a record: its kind and its body.
pub(crate) fn record(connection: &mut Connection<'_>) -> Result<(u8, Vec<u8>), ProbeError> {
    let head = connection.take(5)?;
    let head = [head[0], head[1], head[2], head[3], head[4]];
    let (kind, length) = header(head)?;
    Ok((kind, connection.take(length)?))
}
