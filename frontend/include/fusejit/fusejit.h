// fusejit: everything that users call.
#pragma once

#include "fusejit/data.h"
#include "fusejit/device.h"
#include "fusejit/grad.h"
#include "fusejit/host.h"
#include "fusejit/io.h"
#include "fusejit/memory.h"
#include "fusejit/models.h"
#include "fusejit/nn.h"
#include "fusejit/ops.h"
#include "fusejit/optim.h"
#include "fusejit/profile.h"
#include "fusejit/random.h"
#include "fusejit/runtime.h"
#include "fusejit/tensor.h"
#include "fusejit/train.h"
#include "fusejit/warmup.h"
