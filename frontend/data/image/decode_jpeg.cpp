// jpeglib.h needs <cstdio> in front of it, jerror.h needs jpeglib.h.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <csetjmp>

#include "frontend/data/image/decode.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

struct JpegReader {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = {};

  JpegReader() = default;
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }  // also of one that was never made
};

[[noreturn]] void give_up(j_common_ptr jpeg) {
  auto* reader = static_cast<JpegReader*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, reader->message);
  std::longjmp(reader->back, 1);
}

// Most warnings say that pixels have been made up. These do not.
void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  const int code = jpeg->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR || code == JWRN_TOO_MUCH_DATA)
    return;
  give_up(jpeg);
}

// A file of a few thousand empty scans would take hours.
void on_progress(j_common_ptr jpeg) {
  constexpr int kMostScans = 500;  // libjpeg-turbo's own limit where it is tested with damaged files
  auto* decoder = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decoder->input_scan_number <= kMostScans) return;
  auto* reader = static_cast<JpegReader*>(jpeg->client_data);
  std::snprintf(reader->message, sizeof reader->message, "it has more than %d scans", kMostScans);
  std::longjmp(reader->back, 1);
}

bool read_header(JpegReader& reader, const unsigned char* file, unsigned long bytes) {
  reader.jpeg.err = jpeg_std_error(&reader.errors);
  reader.jpeg.client_data = &reader;
  reader.errors.error_exit = give_up;
  reader.errors.emit_message = on_message;
  reader.progress.progress_monitor = on_progress;
  if (setjmp(reader.back) != 0) return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.jpeg.progress = &reader.progress;
  jpeg_mem_src(&reader.jpeg, file, bytes);
  jpeg_read_header(&reader.jpeg, TRUE);
  return true;
}

bool read_rows(JpegReader& reader, std::uint8_t* pixels, std::size_t row_bytes) {
  if (setjmp(reader.back) != 0) return false;
  jpeg_start_decompress(&reader.jpeg);
  while (reader.jpeg.output_scanline < reader.jpeg.output_height) {
    JSAMPROW row = pixels + reader.jpeg.output_scanline * row_bytes;
    jpeg_read_scanlines(&reader.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&reader.jpeg);
  return true;
}

// x * y / 255, rounded.
int product(int x, int y) {
  const int t = x * y + 128;
  return ((t >> 8) + t) >> 8;
}

// Of inks as all programs write them, turned over: 255 is no ink.
Image rgb_of_cmyk(const Image& inks) {
  Image image{inks.height, inks.width, 3, std::vector<std::uint8_t>(inks.pixels.size() / 4 * 3)};
  for (std::size_t i = 0; i < inks.pixels.size() / 4; ++i) {
    const int light = inks.pixels[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c)
      image.pixels[3 * i + c] = static_cast<std::uint8_t>(light - product(255 - inks.pixels[4 * i + c], light));
  }
  return image;
}

}  // namespace

Image decode_jpeg(std::span<const std::byte> file, const std::string& name) {
  JpegReader reader;
  const auto check = [&](bool went_well) {
    FJ_CHECK(went_well, "{}: the JPEG file is damaged: {}", name, reader.message);
  };
  check(read_header(reader, reinterpret_cast<const unsigned char*>(file.data()), file.size()));
  jpeg_decompress_struct& jpeg = reader.jpeg;
  FJ_CHECK(!jpeg.arith_code, "{}: the JPEG file is coded arithmetically, which is not read (Huffman-coded files are)",
           name);
  const bool is_grey = jpeg.jpeg_color_space == JCS_GRAYSCALE;
  const bool has_inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  FJ_CHECK(jpeg.jpeg_color_space != JCS_UNKNOWN, "{}: the JPEG file has {} channels of a kind that is not known", name,
           jpeg.num_components);
  jpeg.out_color_space = is_grey ? JCS_GRAYSCALE : has_inks ? JCS_CMYK : JCS_RGB;
  // A block of 64 pixels takes a bit at least, in a channel of at least a quarter of the pixels.
  constexpr std::int64_t kMostPixelsAByte = std::int64_t{8} * 64 * 4;
  const std::int64_t channels = is_grey ? 1 : has_inks ? 4 : 3;
  check_claim(name, jpeg.image_height, jpeg.image_width, static_cast<std::int64_t>(file.size()) * kMostPixelsAByte);
  Image image = blank(jpeg.image_height, jpeg.image_width, channels);
  check(read_rows(reader, image.pixels.data(), static_cast<std::size_t>(image.width * channels)));
  return has_inks ? rgb_of_cmyk(image) : image;
}

}  // namespace fusejit::data
