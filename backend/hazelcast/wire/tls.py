"""TLS towards members: whose certificates are accepted, and which one is shown."""

from __future__ import annotations

import ssl

from quarterdeck.backend.hazelcast.wire.settings import TlsOptions


class BadTlsFiles(ValueError):
    """Files of which no TLS can be made. The message names the file."""


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """What all connections use. Nothing older than TLS 1.2 is spoken. Raises `BadTlsFiles`."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = options.check_host_name
    if options.authority is not None:
        context = _with_authority(options, context)
    if options.certificate is not None:
        try:
            context.load_cert_chain(options.certificate, options.key)
        except (OSError, ssl.SSLError) as error:
            raise BadTlsFiles(f"the certificate {options.certificate} with its key cannot be used: {error}") from error
    elif options.key is not None:
        raise BadTlsFiles(f"the key {options.key} needs a certificate beside it")
    return context


def _with_authority(options: TlsOptions, like: ssl.SSLContext) -> ssl.SSLContext:
    """Only that authority is trusted, not those of the system."""
    try:
        context = ssl.create_default_context(cafile=options.authority)
    except (OSError, ssl.SSLError) as error:
        raise BadTlsFiles(f"the authority {options.authority} cannot be used: {error}") from error
    context.minimum_version, context.check_hostname = like.minimum_version, like.check_hostname
    return context
