// One decoder a file format. What stands in a file is checked against its length before memory is taken for it.
//
// libpng and libjpeg end a call that fails with longjmp(), which runs no destructors: the functions that call them hold
// plain values alone, return whether it went well, and own nothing; memory is taken between two such calls.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fusejit/data/image.h"

namespace fusejit::data {

// With the channels of the file, but palettes looked up. UserError, beginning with the name.
Image decode_png(std::span<const std::byte> file, const std::string& name);
// Grey or RGB.
Image decode_jpeg(std::span<const std::byte> file, const std::string& name);

// What a header claims, before any memory is taken for it: a file of its length holds at most `most_pixels`.
void check_claim(const std::string& name, std::int64_t height, std::int64_t width, std::int64_t most_pixels);
Image blank(std::int64_t height, std::int64_t width, std::int64_t channels);

}  // namespace fusejit::data
