//! Cutting bytes at places the input chooses.

/// `bytes` in pieces; `recipe` gives their lengths, over and over. Without a recipe, one piece.
pub fn pieces<'a>(mut bytes: &'a [u8], recipe: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in recipe.iter().cycle() {
        if bytes.is_empty() {
            return pieces;
        }
        let (piece, rest) = bytes.split_at(usize::from(*length).max(1).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}
