"""The words for levels in the logging libraries under the product, also as `java.util.logging` says them in other languages."""

from __future__ import annotations

LEVELS = frozenset(
    (
        "ERROR SEVERE FATAL ERR SCHWERWIEGEND GRAVE ALLVARLIG CRITICAL "
        "WARNING WARN WARNUNG AVERTISSEMENT ADVERTENCIA AVVERTENZA AVISO VARNING "
        "INFO INFORMATION INFOS INFORMACIÓN INFORMAZIONI NOTICE "
        "DEBUG TRACE CONFIG FINE FINER FINEST KONFIG"
    ).split()
)
