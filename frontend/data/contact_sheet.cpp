#include <algorithm>

#include "frontend/io/png.h"
#include "fusejit/data.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

std::string label_text(const std::vector<std::string>& names, std::int64_t label) {
  const bool named = label >= 0 && static_cast<std::size_t>(label) < names.size();
  return named ? names[static_cast<std::size_t>(label)] : std::to_string(label);
}

}  // namespace

void save_contact_sheet(const std::string& path, const ImageSet& images, const std::vector<std::int64_t>& which,
                        const std::vector<std::int64_t>& predicted, const std::vector<std::string>& names,
                        int columns) {
  FJ_CHECK(which.size() == predicted.size() && !which.empty(), "contact sheet: {} images and {} predictions are given",
           which.size(), predicted.size());
  FJ_CHECK(columns >= 1, "contact sheet: {} columns, there must be at least one", columns);
  constexpr int kScale = 3, kGap = 8, kLine = 10;
  constexpr io::Color kPaper{250, 250, 248}, kInk{30, 30, 30}, kRight{20, 130, 60}, kWrong{200, 40, 30};
  const int height = static_cast<int>(images.height) * kScale, width = static_cast<int>(images.width) * kScale;
  const int rows = (static_cast<int>(which.size()) + columns - 1) / columns;
  const int cell_width = width + kGap, cell_height = height + 2 * kLine + kGap;
  io::Picture picture(columns * cell_width + kGap, rows * cell_height + kGap, kPaper);
  for (std::size_t i = 0; i < which.size(); ++i) {
    FJ_CHECK(which[i] >= 0 && which[i] < images.count, "contact sheet: there is no image {} ({} images)", which[i],
             images.count);
    const int x = kGap + static_cast<int>(i) % columns * cell_width,
              y = kGap + static_cast<int>(i) / columns * cell_height;
    const std::uint8_t* pixels = &images.pixels[static_cast<std::size_t>(which[i] * images.height * images.width)];
    for (int v = 0; v < images.height; ++v) {
      for (int h = 0; h < images.width; ++h) {
        const std::uint8_t grey = pixels[v * images.width + h];
        picture.fill(x + h * kScale, y + v * kScale, kScale, kScale, {grey, grey, grey});
      }
    }
    const std::int64_t truth = images.labels[static_cast<std::size_t>(which[i])];
    const bool right = truth == predicted[i];
    picture.text(x, y + height + 3, label_text(names, predicted[i]), right ? kRight : kWrong);
    if (!right) picture.text(x, y + height + 3 + kLine, label_text(names, truth), kInk);
  }
  io::write_png(path, picture);
}

}  // namespace fusejit::data
