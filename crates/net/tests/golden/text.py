"""Golden values of CONCH's text tower in small, from its published constants: torch's attention, a
class token behind the text, heads of 64.

python crates/net/tests/golden/text.py
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from fill import sample, values
from generate import write

WIDTH, DEPTH, CONTEXT, VOCABULARY, OUTPUT = 128, 2, 12, 40, 24
TEXTS = [
    [1, 7, 30, 2, 0, 0, 0, 0, 0, 0, 0],
    [1, 39, 12, 12, 25, 8, 2, 0, 0, 0, 0],
    [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2],
]
torch.set_num_threads(1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = nn.MultiheadAttention(WIDTH, WIDTH // 64, batch_first=True)
        self.mlp = nn.Module()
        self.mlp.c_fc, self.mlp.c_proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, hidden):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=hidden, need_weights=False)[0]
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x))))


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positional_embedding = nn.Parameter(torch.empty(CONTEXT, WIDTH))
        self.cls_emb = nn.Parameter(torch.empty(WIDTH))
        self.text_projection = nn.Parameter(torch.empty(WIDTH, OUTPUT))
        self.transformer = nn.Module()
        self.transformer.resblocks = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.ln_final = nn.LayerNorm(WIDTH)

    def forward(self, text):
        rows = []
        for tokens in text:  # one by one: what is hidden differs from text to text
            x = torch.cat([self.token_embedding(tokens), self.cls_emb[None]])
            x = (x + self.positional_embedding)[None]
            hidden = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)
            hidden[-1, 1:] |= tokens == 0  # padded on the left: shifted by one
            for layer in self.transformer.resblocks:
                x = layer(x, hidden)
            rows.append(self.ln_final(x[0, -1]) @ self.text_projection)
        return F.normalize(torch.stack(rows), dim=-1)


@torch.no_grad()
def main():
    tower = Tower().eval()
    file = {"text." + n: tuple(t.shape) for n, t in tower.state_dict().items()}
    drawn = {n: values(n, s) for n, s in file.items()}
    tower.load_state_dict({n[len("text."):]: t for n, t in drawn.items()}, strict=True)
    y = tower(torch.tensor(TEXTS))
    write("text", {"tensors": {n: list(s) for n, s in file.items()}, "texts": TEXTS, "embed": sample(y)})


if __name__ == "__main__":
    main()
