"""The view that answers operators' questions. Each question is a heading of one sheet, with its answer of now below."""
