/*
 * A block of symbols, version 1, as symblock.c writes and symtab_add.c reads it:
 *
 *   magic, version    4 bytes
 *   n_frames, ids     varint, 8 bytes each
 *   n_stacks, ids     varint, 8 bytes each
 *   one zstd frame with columns, one after the other:
 *     strings         number, lengths, bytes
 *     mappings        number; files, build ids (string codes), starts, limits, offsets
 *     functions       number; names, system names, files (string codes), start lines (zigzag)
 *     frames          functions (frame codes); of those defined here: mappings (0 none, else number + 1), lines
 * (zigzag, less the function's start line), columns (zigzag), addresses, flags stacks          pops, pushes, frames
 * (ref codes)
 *
 * Stacks are sorted so that neighbours share their first frames: each says how many frames of the one before it go and
 * how many come. Frames, functions and strings are numbered in the order in which a reader first meets them, so most
 * codes are NEW.
 */
#ifndef CODECS_SYMBLOCK_H
#define CODECS_SYMBLOCK_H

#define SYMBLOCK_MAGIC "FGS\x01"
enum { SYMBLOCK_MAGIC_BYTES = 4, SYMBLOCK_ZSTD_LEVEL = 3 };

/* Codes of strings. LAST: that of the row before; for system names: the name. From OLD on: number + OLD. */
enum { STRING_EMPTY, STRING_NEW, STRING_LAST, STRING_OLD };
/* What a frame is: defined in another block, a bare address, of the next new function; from OLD on: number + OLD. */
enum { FRAME_ELSEWHERE, FRAME_BARE, FRAME_NEW, FRAME_OLD };
/* A frame of a stack: the next new one, the one that followed its caller last time; from OLD on: number + OLD. */
enum { REF_NEW, REF_FOLLOWS, REF_OLD };

#endif
