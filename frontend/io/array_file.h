// Files of named arrays in the format that their name's ending says: .safetensors, or .npz for every other.
//
// Names are those of the values, whatever the format calls them, but where they say `stored`. Errors as in npz.h and
// safetensors.h.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "frontend/io/named_array.h"

namespace fusejit::io {

bool is_safetensors(const std::string& path);

std::vector<NamedArray> read_arrays(const std::string& path, const WantedArray& wanted = {});
// Names, dtypes and shapes alone: no elements are read.
std::vector<NamedArray> describe_arrays(const std::string& path);
// Empty where the format has none.
std::map<std::string, std::string> read_metadata(const std::string& path);
// UserError also for metadata that the format has no place for.
void write_arrays(const std::string& path, std::vector<NamedArray> arrays,
                  const std::map<std::string, std::string>& metadata);

// Under the names that an .npz has for them ("x.bf16"), whatever the format; for files of a graph's arrays.
std::vector<NamedArray> read_stored_arrays(const std::string& path, const WantedName& named, const WantedArray& wanted);
void write_stored_arrays(const std::string& path, std::vector<NamedArray> arrays);

}  // namespace fusejit::io
