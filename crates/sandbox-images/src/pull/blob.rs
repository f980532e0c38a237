use std::io::{self, Read, Write};

use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, HeaderMap, HeaderValue, RANGE};
use sandbox_core::with_causes;

use super::registry::{Registry, Trouble};
use crate::documents::Descriptor;
use crate::store::{BlobWriter, Staging};
use crate::{ImageError, Progress};

const BETWEEN_TOLD: u64 = 1 << 20;

impl Registry<'_> {
    /// Fetches a blob that is not here yet. One that breaks off is continued.
    pub(super) fn blob(
        &mut self,
        staging: &mut Staging<'_>,
        descriptor: &Descriptor,
        what: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ImageError> {
        if staging.has(&descriptor.digest) {
            return Ok(());
        }
        let mut writer = staging.writer()?;
        let mut tries = 0;
        while let Err(trouble) = self.go_on(staging, &mut writer, descriptor, progress) {
            let reason = self.bear(trouble, &mut tries, self.options.tries)?;
            progress(Progress::Retrying { digest: descriptor.digest.clone(), reason });
        }
        if writer.digest() != descriptor.digest {
            let (wanted, found) = (descriptor.digest.clone(), writer.digest());
            return Err(ImageError::WrongDigest { what: what.to_owned(), wanted, found });
        }
        staging.keep(writer).map(drop)
    }

    /// Fetches what is missing of a blob.
    fn go_on(
        &mut self,
        staging: &Staging<'_>,
        writer: &mut BlobWriter,
        descriptor: &Descriptor,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Trouble> {
        let begin = writer.size();
        let mut headers = HeaderMap::new();
        if begin > 0 {
            let range = HeaderValue::from_str(&format!("bytes={begin}-"));
            headers.insert(RANGE, range.expect("digits are fit for a header"));
        }
        let mut response = self.get(&format!("blobs/{}", descriptor.digest), &headers)?;
        let continued = response.status() == StatusCode::PARTIAL_CONTENT
            && response.headers().get(CONTENT_RANGE).is_some_and(|range| {
                range.as_bytes().starts_with(format!("bytes {begin}-").as_bytes())
            });
        if begin > 0 && !continued {
            // It sends all of it again.
            *writer = staging.writer().map_err(Trouble::Lasting)?;
        }
        let mut buffer = vec![0; 1 << 16];
        loop {
            self.check_patience()?;
            let count = match response.read(&mut buffer) {
                Ok(0) if writer.size() < descriptor.size => {
                    return Err(Trouble::Passing("broke off".to_owned()));
                }
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(Trouble::Passing(format!("broke off: {}", with_causes(&error))));
                }
            };
            let before = writer.size();
            if before + count as u64 > descriptor.size {
                return Err(Trouble::Lasting(self.complaint("sends more than its manifest says")));
            }
            writer.write_all(&buffer[..count]).map_err(|error| {
                Trouble::Lasting(ImageError::io("write", "a layer".as_ref())(error))
            })?;
            if before / BETWEEN_TOLD != writer.size() / BETWEEN_TOLD
                || writer.size() == descriptor.size
            {
                let (digest, of) = (descriptor.digest.clone(), descriptor.size);
                progress(Progress::Fetching { digest, bytes: writer.size(), of });
            }
        }
    }
}
