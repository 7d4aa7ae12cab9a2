"""The words for levels in the logging libraries under the product, also as `java.util.logging` says them in other languages."""

from __future__ import annotations

LEVELS: dict[str, str] = {
    word: level
    for level, words in {
        "error": "ERROR SEVERE FATAL ERR SCHWERWIEGEND GRAVE ALLVARLIG CRITICAL",
        "warning": "WARNING WARN WARNUNG AVERTISSEMENT ADVERTENCIA AVVERTENZA AVISO VARNING",
        "info": "INFO INFORMATION INFOS INFORMACIÓN INFORMAZIONI NOTICE",
        "debug": "DEBUG TRACE CONFIG FINE FINER FINEST KONFIG",
    }.items()
    for word in words.split()
}
"""What each word means: error, warning, info or debug."""
