// The programs of this build.
#pragma once

#include <string>

namespace fusejit {

inline const std::string kFolderOfPrograms = std::string(FUSEJIT_BINARY_DIR) + "/bin/",
                         kFusejit = kFolderOfPrograms + "fusejit", kFusejitDump = kFolderOfPrograms + "fusejit-dump",
                         kTrainConvnet = kFolderOfPrograms + "train_convnet";

}  // namespace fusejit
