use std::io::{self, Read, Write};

use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, HeaderMap, HeaderValue, RANGE};
use sandbox_core::with_causes;

use super::registry::{Registry, RequestError};
use crate::documents::Descriptor;
use crate::store::{BlobWriter, Staging};
use crate::{ImageError, Progress};

/// Progress is reported each time this many bytes have been received.
const PROGRESS_BYTES: u64 = 1 << 20;

impl Registry<'_> {
    /// Downloads a blob, unless it is in the store. Resumes an interrupted download.
    pub(super) fn blob(
        &mut self,
        staging: &mut Staging<'_>,
        descriptor: &Descriptor,
        what: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ImageError> {
        if staging.contains(&descriptor.digest) {
            return Ok(());
        }
        let mut writer = staging.blob_writer()?;
        let mut attempts = 0;
        while let Err(error) = self.download_rest(staging, &mut writer, descriptor, progress) {
            let reason = self.wait_for_retry(error, &mut attempts, self.options.max_attempts)?;
            progress(Progress::Retrying { digest: descriptor.digest.clone(), reason });
        }
        if writer.digest() != descriptor.digest {
            let (expected, found) = (descriptor.digest.clone(), writer.digest());
            return Err(ImageError::DigestMismatch { what: what.to_owned(), expected, found });
        }
        staging.add(writer).map(drop)
    }

    /// Downloads what is missing of a blob.
    fn download_rest(
        &mut self,
        staging: &Staging<'_>,
        writer: &mut BlobWriter,
        descriptor: &Descriptor,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), RequestError> {
        let start = writer.size();
        let mut headers = HeaderMap::new();
        if start > 0 {
            let range = HeaderValue::from_str(&format!("bytes={start}-"));
            headers.insert(RANGE, range.expect("digits are valid in a header"));
        }
        let mut response = self.get(&format!("blobs/{}", descriptor.digest), &headers)?;
        let is_resumed = response.status() == StatusCode::PARTIAL_CONTENT
            && response.headers().get(CONTENT_RANGE).is_some_and(|range| {
                range.as_bytes().starts_with(format!("bytes {start}-").as_bytes())
            });
        if start > 0 && !is_resumed {
            // The registry sends the whole blob again.
            *writer = staging.blob_writer().map_err(RequestError::Permanent)?;
        }
        let mut buffer = vec![0; 1 << 16];
        loop {
            self.check_deadline()?;
            let count = match response.read(&mut buffer) {
                Ok(0) if writer.size() < descriptor.size => {
                    return Err(RequestError::Transient("interrupted the transfer".to_owned()));
                }
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(RequestError::Transient(format!(
                        "interrupted the transfer: {}",
                        with_causes(&error)
                    )));
                }
            };
            let before = writer.size();
            if before + count as u64 > descriptor.size {
                return Err(RequestError::Permanent(
                    self.error("sent more bytes than the manifest declares"),
                ));
            }
            writer.write_all(&buffer[..count]).map_err(|error| {
                RequestError::Permanent(ImageError::io("write", "a layer".as_ref())(error))
            })?;
            if before / PROGRESS_BYTES != writer.size() / PROGRESS_BYTES
                || writer.size() == descriptor.size
            {
                let (digest, of) = (descriptor.digest.clone(), descriptor.size);
                progress(Progress::Fetching { digest, bytes: writer.size(), of });
            }
        }
    }
}
